"""An SPDX 2.3 document of an image's files: each one, its hashes, and the Debian package or wheel it comes from."""
import csv
import glob
import hashlib
import json
import os
import re
from collections import namedtuple

Package = namedtuple("Package", "name version architecture source", defaults=(None, None))  # of a wheel: the first two

CREATED = "1970-01-01T00:00:00Z"  # the same files give the same document
NO_PACKAGE = {"/etc/ssl/certs/ca-certificates.crt": "ca-certificates"}  # made when the package was installed


class Dpkg:
    """Which Debian package owns a file of this machine."""

    def __init__(self, folder="/var/lib/dpkg"):
        self.packages, self.files = {}, {}
        with open(f"{folder}/status", encoding="utf-8") as f:
            for paragraph in f.read().split("\n\n"):
                fields = dict(re.findall(r"^(Package|Version|Architecture|Source): (\S+)", paragraph, re.MULTILINE))
                if len(fields) < 3:
                    continue
                package = Package(fields["Package"], fields["Version"], fields["Architecture"],
                                  fields.get("Source", fields["Package"]))
                self.packages[package.name] = package
        for path in glob.glob(f"{folder}/info/*.list"):
            name = os.path.basename(path)[:-len(".list")].split(":")[0]
            with open(path, encoding="utf-8") as f:
                for line in f:
                    self.files[line.rstrip("\n")] = name

    def owner(self, path):
        """The Package of a file, or None. /lib and /usr/lib are one folder; packages may say either."""
        if path is None:
            return None
        for way in (path, path.removeprefix("/usr"), "/usr" + path):
            name = self.files.get(way) or NO_PACKAGE.get(way)
            if name in self.packages:
                return self.packages[name]
        return None


class Wheels:
    """Which wheel owns a file of a folder into which pip has installed wheels."""

    def __init__(self, folder):
        self.files = {}
        for record in sorted(glob.glob(f"{folder}/*.dist-info/RECORD")):
            name, version = os.path.basename(os.path.dirname(record)).removesuffix(".dist-info").rsplit("-", 1)
            package = Package(name.replace("_", "-"), version)
            with open(record, newline="", encoding="utf-8") as f:
                for row in csv.reader(f):
                    self.files[os.path.realpath(os.path.join(folder, row[0]))] = package

    def owner(self, path):
        return self.files.get(path)


class Owners:
    """The first of several that knows a file."""

    def __init__(self, *owners):
        self.owners = owners

    def owner(self, path):
        return next(filter(None, (each.owner(path) for each in self.owners)), None)


def _ref(kind, text):
    return f"SPDXRef-{kind}-" + re.sub(r"[^A-Za-z0-9.-]", "-", text.strip("/"))


def _package(package):
    out = {
        "SPDXID": _ref("Package", package.name), "name": package.name, "versionInfo": package.version,
        "supplier": "Organization: Debian", "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION",
        "sourceInfo": f"built from source package {package.source}"}
    if package.source is None:
        out.update(supplier="NOASSERTION", sourceInfo="installed from a Python wheel")
        where = f"pkg:pypi/{package.name}@{package.version}"
    else:
        where = (f"pkg:deb/debian/{package.name}@{package.version.replace('+', '%2B').replace(':', '%3A')}"
                 f"?arch={package.architecture}&distro=debian-12")
    out["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": where}]
    return out


def _file(root, path, change):
    hashes = hashlib.sha1(), hashlib.sha256()
    with open(root + path, "rb") as f:
        while data := f.read(1 << 20):
            for each in hashes:
                each.update(data)
    out = {
        "SPDXID": _ref("File", path), "fileName": "." + path, "licenseConcluded": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "checksums": [{"algorithm": "SHA1", "checksumValue": hashes[0].hexdigest()},
                      {"algorithm": "SHA256", "checksumValue": hashes[1].hexdigest()}]}
    if change:
        out["comment"] = change
    return out


def document(name, version, root, origins, owners, linked=()):
    """The document as JSON text; `origins`: {path in the image: (file it was copied from or None, change or None)}. `linked`: the
    packages that are in a program, and have no file of their own."""
    itself = {
        "SPDXID": "SPDXRef-Package-medley", "name": name, "versionInfo": version, "supplier": "Organization: Medley",
        "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "Apache-2.0",
        "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION", "primaryPackagePurpose": "APPLICATION"}
    files, packages, relations = [], {package.name: package for package in linked}, []
    for path, (origin, change) in sorted(origins.items()):
        files.append(_file(root, path, change))
        owner = owners.owner(origin)
        if owner:
            packages[owner.name] = owner
        relations.append({"spdxElementId": _ref("Package", owner.name) if owner else itself["SPDXID"],
                          "relationshipType": "CONTAINS", "relatedSpdxElement": _ref("File", path)})
    relations.append({"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                      "relatedSpdxElement": itself["SPDXID"]})
    for package in sorted(packages):
        relations.append({"spdxElementId": itself["SPDXID"], "relationshipType": "DEPENDS_ON",
                          "relatedSpdxElement": _ref("Package", package)})
    content = {"packages": [itself] + [_package(packages[p]) for p in sorted(packages)], "files": files,
               "relationships": relations}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return json.dumps({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
        "documentNamespace": f"https://medley.dev/spdx/{name}-{digest}",
        "creationInfo": {"created": CREATED, "creators": ["Organization: Medley", "Tool: deploy/docker/rootfs"]},
        **content}, indent=1, sort_keys=True) + "\n"
