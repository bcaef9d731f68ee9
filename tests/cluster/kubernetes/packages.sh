# Installs what the cluster scripts need: Debian packages, and Go. Sourced by build and install-packages.
# shellcheck shell=bash

# Programs of the first list run the control plane; those of the second run and build nodes.
CONTROL_PLANE_PACKAGES=(ca-certificates openssl curl util-linux procps)
NODE_PACKAGES=(containerd runc containernetworking-plugins iptables nftables conntrack ethtool iproute2 kmod
  busybox gcc libc6-dev python3 jq)
GO_INSTALLED=go1.25.5 # the Go that need_go brings where the machine's is missing or too old

packages_of() { # GROUP...: the Debian packages that those groups need
  local group
  for group in "$@"; do
    case $group in
      control-plane | helm | kwok) printf '%s\n' "${CONTROL_PLANE_PACKAGES[@]}" ;;
      node) printf '%s\n' "${CONTROL_PLANE_PACKAGES[@]}" "${NODE_PACKAGES[@]}" ;;
      *) die "unknown group: $group" ;;
    esac
  done | sort -u
}

install_packages() { # PACKAGE...: those that are missing
  local missing=() package as_root=()
  if ! command -v dpkg-query >/dev/null; then
    say "this is not Debian: if a program is missing below, install what corresponds to: $*"
    return
  fi
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  # A static busybox, which cannot be installed beside the other, will do.
  if command -v busybox >/dev/null; then missing=("${missing[@]/#busybox/}"); fi
  # shellcheck disable=SC2206
  missing=(${missing[@]})
  [ "${#missing[@]}" -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "these Debian packages are missing: ${missing[*]}. Install them as root: $HERE/install-packages"
    as_root=(sudo)
  fi
  with_progress "apt-get update" last_line "${as_root[@]}" apt-get update
  with_progress "installing ${missing[*]}" last_line "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing[@]}"
}

last_line() { tail -n 1 "$1" | tr "\r" "\n" | tail -n 1 | cut -c1-100; }

need() { # PROGRAM...: or end with a sentence
  local program
  for program in "$@"; do
    command -v "$program" >/dev/null || die "the program $program is missing: run $HERE/install-packages as root"
  done
}

version_at_least() { # HAVE WANT
  [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

# Puts a Go into PATH that is new enough for every module here: the machine's, the cache's, or one from the module proxy.
need_go() {
  local want have
  want=$(sed -n 's/^go //p' "$HERE"/modules/*/go.mod | sort -V | tail -n 1)
  [ ! -x "$CACHE/$GO_INSTALLED/bin/go" ] || export PATH=$CACHE/$GO_INSTALLED/bin:$PATH
  have=$(installed_go)
  if [ -n "$have" ] && version_at_least "$have" "$want"; then return; fi
  say "Kubernetes needs Go $want; this machine has ${have:-none}: $GO_INSTALLED is installed into $CACHE"
  [ -n "$have" ] || install_packages golang-go
  fetch_go
  export PATH=$CACHE/$GO_INSTALLED/bin:$PATH GOTOOLCHAIN=local
  have=$(installed_go)
  version_at_least "${have:-0}" "$want" || die "$CACHE/$GO_INSTALLED/bin/go does not run. Install Go $want or newer and put it into PATH"
}

installed_go() { go env GOVERSION 2>/dev/null | sed 's/^go//'; }

# The toolchain as a module: the old Go downloads it from GOPROXY and checks its sum, as a newer one would by itself.
fetch_go() {
  local module source
  module=golang.org/toolchain@v0.0.1-$GO_INSTALLED.linux-$(dpkg --print-architecture)
  with_progress "downloading $module" last_line env GOFLAGS= go mod download "$module" ||
    die "$module cannot be downloaded from $(go env GOPROXY). Install Go by hand and put it into PATH"
  source=$(go env GOMODCACHE)/$module
  rm -rf "$CACHE/$GO_INSTALLED.part"
  cp -r "$source" "$CACHE/$GO_INSTALLED.part"
  chmod -R u+w "$CACHE/$GO_INSTALLED.part" # a module's files are read-only, and none of them is executable
  chmod a+x "$CACHE/$GO_INSTALLED.part"/bin/* "$CACHE/$GO_INSTALLED.part"/pkg/tool/*/*
  mv "$CACHE/$GO_INSTALLED.part" "$CACHE/$GO_INSTALLED"
}
