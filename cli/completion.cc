// medley completion bash, zsh, fish: prints a script for this shell that completes by calling `medley __complete`.
// medley completion kubectl: the same for `kubectl medley`.
#include <CLI/CLI.hpp>

#include <cstdio>

#include "cli/commands.h"

namespace medley::cli {
namespace {

constexpr char kBash[] =
    R"sh(# bash completion for medley; load it with: source <(medley completion bash)
_medley() {
  local answer directive
  answer=$("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) || return
  directive=${answer##*:}
  answer=${answer%:*}
  local IFS=$'\n'
  COMPREPLY=($answer)
  if [ "$directive" = 0 ]; then
    COMPREPLY+=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))
  fi
}
complete -o filenames -F _medley medley
)sh";

constexpr char kZsh[] = R"sh(#compdef medley
# zsh completion for medley; load it with: source <(medley completion zsh)
_medley() {
  local answer directive
  local -a candidates
  answer=$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null) || return
  directive=${answer##*:}
  candidates=("${(@f)${answer%:*}}")
  candidates=(${candidates:#})
  (( $#candidates )) && compadd -a candidates
  [[ $directive = 0 ]] && _files
}
compdef _medley medley
)sh";

constexpr char kFish[] = R"sh(# fish completion for medley; load it with: medley completion fish | source
function __medley_complete
  set -l token (commandline -ct)
  set -l words (commandline -opc) "$token"
  for line in ($words[1] __complete $words[2..-1] 2>/dev/null)
    switch $line
      case ':0'
        __fish_complete_path "$token"
      case ':*'
      case '*'
        echo $line
    end
  end
end
complete -c medley -f -a '(__medley_complete)'
)sh";

// kubectl 1.26 and later runs kubectl_complete-PLUGIN from PATH.
constexpr char kKubectl[] = R"sh(#!/bin/sh
# Completion of `kubectl medley`. Save it as an executable kubectl_complete-medley in PATH.
exec kubectl-medley __complete "$@"
)sh";

}  // namespace

void AddCompletion(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("completion", "Print a shell completion script");
  command->require_subcommand(1);
  const auto print = [&](const char* name, const char* what, const char* script) {
    command->add_subcommand(name, what)->callback([script, &exit_status] {
      std::fputs(script, stdout);
      exit_status = 0;
    });
  };
  print("bash", "for bash; load it with: source <(medley completion bash)", kBash);
  print("zsh", "for zsh; load it with: source <(medley completion zsh)", kZsh);
  print("fish", "for fish; load it with: medley completion fish | source", kFish);
  print("kubectl", "for kubectl medley; save it as an executable kubectl_complete-medley in PATH", kKubectl);
}

}  // namespace medley::cli
