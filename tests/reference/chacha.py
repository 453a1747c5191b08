"""ChaCha20 as a stream of numbers, in plain Python: the reference implementation of the core's generator."""

import struct


def _rotate(x, n):
    return ((x << n) | (x >> (32 - n))) & 0xFFFFFFFF


def _quarter(s, a, b, c, d):
    for x, y, z, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        s[x] = (s[x] + s[y]) & 0xFFFFFFFF
        s[z] = _rotate(s[z] ^ s[x], n)


class ChaCha20:
    """Words of the key stream under a key of 32 bytes, block counter from 0, stream 0."""

    def __init__(self, key: bytes, stream: int = 0) -> None:
        self._start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *struct.unpack("<8I", key)]
        self._stream = stream
        self._block = 0
        self._words: list[int] = []

    def u32(self) -> int:
        if not self._words:
            self._words = self._next()[::-1]
        return self._words.pop()

    def u64(self) -> int:
        low = self.u32()
        return low | self.u32() << 32

    def below(self, n: int) -> int:
        while True:
            wide = self.u64() * n
            low = wide & 0xFFFFFFFFFFFFFFFF
            if low >= n or low >= (-n % 2**64) % n:
                return wide >> 64

    def shuffle(self, items: list) -> None:
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]

    def _next(self) -> list[int]:
        counter = [self._block & 0xFFFFFFFF, self._block >> 32, self._stream & 0xFFFFFFFF, self._stream >> 32]
        self._block += 1
        start = [*self._start, *counter]
        s = list(start)
        for _ in range(10):
            for a in range(4):
                _quarter(s, a, a + 4, a + 8, a + 12)
            for a in range(4):
                _quarter(s, a, 4 + (a + 1) % 4, 8 + (a + 2) % 4, 12 + (a + 3) % 4)
        return [(x + y) & 0xFFFFFFFF for x, y in zip(s, start, strict=True)]
