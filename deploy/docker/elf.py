"""Reads the dynamic part of 64-bit little-endian ELF files, and removes unused libraries from them.

Debian's LibTorch names libraries for images, films, maps and message queues, and these name two hundred more, although
LibTorch uses no symbol of them: it was linked without --as-needed. `without` removes the names afterwards.
"""
import struct

DT_NULL, DT_NEEDED, DT_STRTAB, DT_VERNEED, DT_VERNEEDNUM = 0, 1, 5, 0x6FFFFFFE, 0x6FFFFFFF
SHT_DYNSYM, PT_LOAD, PT_DYNAMIC = 11, 1, 2
STB_LOCAL, STB_WEAK = 0, 2


class Elf:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = bytearray(f.read())
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path} is not a 64-bit little-endian ELF file")
        program, sections = struct.unpack_from("<QQ", self.data, 32)
        program_size, programs, section_size, self.section_count = struct.unpack_from("<HHHH", self.data, 54)
        self.sections = [sections + i * section_size for i in range(self.section_count)]
        self.loads, self.dynamic = [], (0, 0)
        for i in range(programs):
            kind, _, offset, address, _, size = struct.unpack_from("<IIQQQQ", self.data, program + i * program_size)
            if kind == PT_LOAD:
                self.loads.append((address, offset, size))
            elif kind == PT_DYNAMIC:
                self.dynamic = (offset, size)
        self.tags = self._tags()
        self.strings = self._offset(self._value(DT_STRTAB)) if self.tags else 0

    def needed(self):
        """Names of the libraries that this file asks for, in its order."""
        return [self._string(v) for t, v in self.tags if t == DT_NEEDED]

    def defined(self):
        """Symbols that this file offers to others."""
        return {name for name, info, here in self._symbols() if here and info >> 4 != STB_LOCAL}

    def wanted(self):
        """Symbols that others must define for this file to load."""
        return {name for name, info, here in self._symbols() if not here and info >> 4 != STB_WEAK}

    def without(self, names):
        """The bytes of this file when it does not ask for the libraries `names`; no symbol may come from them."""
        for file in self._versioned():
            if file in names:
                raise ValueError(f"symbols of {file} are used")
        tags = [(t, v) for t, v in self.tags if t != DT_NEEDED or self._string(v) not in names]
        out, (offset, size) = bytearray(self.data), self.dynamic
        for i in range(size // 16):
            struct.pack_into("<QQ", out, offset + 16 * i, *(tags[i] if i < len(tags) else (DT_NULL, 0)))
        return bytes(out)

    def _tags(self):
        out, (offset, size) = [], self.dynamic
        for at in range(offset, offset + size, 16):
            tag, value = struct.unpack_from("<QQ", self.data, at)
            if tag == DT_NULL:
                break
            out.append((tag, value))
        return out

    def _value(self, tag):
        return next((v for t, v in self.tags if t == tag), None)

    def _offset(self, address):
        for start, offset, size in self.loads:
            if start <= address < start + size:
                return address - start + offset
        raise ValueError(f"address {address:#x} is in no segment")

    def _string(self, at):
        start = self.strings + at
        return self.data[start:self.data.index(0, start)].decode()

    def _symbols(self):
        for header in self.sections:
            kind, offset, size = struct.unpack_from("<4xI16xQQ", self.data, header)
            if kind != SHT_DYNSYM:
                continue
            for at in range(offset + 24, offset + size, 24):
                name, info, section = struct.unpack_from("<IBxH", self.data, at)
                yield self._string(name), info, section != 0

    def _versioned(self):
        """Libraries of which versioned symbols are used."""
        first = self._value(DT_VERNEED)
        at = 0 if first is None else self._offset(first)
        for _ in range(self._value(DT_VERNEEDNUM) or 0):
            file, following = struct.unpack_from("<4xI4xI", self.data, at)
            yield self._string(file)
            at += following
