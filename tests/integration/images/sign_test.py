"""Builds the operator's image, and checks its SBOM and its signatures with openssl, as cosign does with a key."""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import unittest

SOURCE = os.environ["MEDLEY_SOURCE_DIR"]
DOCKER = os.path.join(SOURCE, "deploy", "docker")


def sign(*arguments):
    return subprocess.run([os.path.join(DOCKER, "sign"), *arguments], capture_output=True, text=True, check=False)


class SignTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="medley-sign-test-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        subprocess.run([os.path.join(DOCKER, "images"), "--raw", "--out", cls.folder, "operator"], check=True)
        cls.image = os.path.join(cls.folder, "operator.tar")
        cls.public = os.path.join(cls.folder, "signing.pub")

    def copied(self):
        """Another folder with the same files."""
        folder = os.path.join(self.folder, self.id().rsplit(".", 1)[1])
        os.mkdir(folder)
        for name in os.listdir(self.folder):
            if name.startswith("operator."):
                shutil.copy(os.path.join(self.folder, name), folder)
        return os.path.join(folder, "operator.tar")

    def test_what_was_built_verifies(self):
        done = sign("--verify", self.public, self.image)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_openssl_agrees(self):
        with open(self.image + ".sig", "rb") as file:
            raw = base64.b64decode(file.read(), validate=True)
        with open(os.path.join(self.folder, "raw"), "wb") as file:
            file.write(raw)
        done = subprocess.run(["openssl", "dgst", "-sha256", "-verify", self.public, "-signature", file.name, self.image],
                              capture_output=True, text=True, check=False)
        self.assertIn("Verified OK", done.stdout)

    def test_a_changed_byte_is_noticed(self):
        for name in ("operator.tar", "operator.spdx.json"):
            with self.subTest(name):
                image = os.path.join(self.folder, "changed-" + name)
                os.mkdir(image)
                for each in os.listdir(self.folder):
                    if each.startswith("operator."):
                        shutil.copy(os.path.join(self.folder, each), image)
                path = os.path.join(image, name)
                with open(path, "r+b") as file:
                    file.seek(os.path.getsize(path) // 2)
                    byte = file.read(1)
                    file.seek(-1, os.SEEK_CUR)
                    file.write(bytes([byte[0] ^ 1]))
                done = sign("--verify", self.public, os.path.join(image, "operator.tar"))
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"{name}: the signature in", done.stderr)

    def test_another_key_is_noticed(self):
        image = self.copied()
        self.assertEqual(sign("--key", os.path.join(self.folder, "other.key"), image).returncode, 0)
        done = sign("--verify", self.public, image)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("does not match"), 3)

    def test_the_private_key_is_readable_by_its_owner_only(self):
        self.assertEqual(os.stat(os.path.join(self.folder, "signing.key")).st_mode & 0o777, 0o600)

    def test_the_sbom_lists_the_program_and_its_packages(self):
        with open(os.path.join(self.folder, "operator.spdx.json"), encoding="utf-8") as file:
            sbom = json.load(file)
        names = {package["name"] for package in sbom["packages"]}
        self.assertTrue(any("medley-operator" in name for name in names), names)
        self.assertIn("libgrpc++1.51", names)


if __name__ == "__main__":
    unittest.main()
