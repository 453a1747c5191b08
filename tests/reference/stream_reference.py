"""The native stream kernels in plain Python: slow, short, and equal to them choice by choice.

`Keyed` is the ChaCha20 that the core draws from; any object with `at`, `index` and `below` may replace it.
"""

from __future__ import annotations

import struct

ARC = 1 << 32
MASK = (1 << 64) - 1


def chacha20(key: bytes, counter: int, stream: int) -> list[int]:
    """One block of ChaCha20 with a 64-bit counter and a 64-bit nonce: sixteen words."""
    start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *struct.unpack("<8I", key)]
    start += [counter & 0xFFFFFFFF, counter >> 32 & 0xFFFFFFFF, stream & 0xFFFFFFFF, stream >> 32 & 0xFFFFFFFF]
    x = list(start)

    def quarter(a, b, c, d):
        for p, q, r, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[p] = x[p] + x[q] & 0xFFFFFFFF
            y = x[r] ^ x[p]
            x[r] = (y << by | y >> 32 - by) & 0xFFFFFFFF

    for _ in range(10):
        for i in range(4):
            quarter(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return [a + b & 0xFFFFFFFF for a, b in zip(x, start, strict=True)]


def derive(key: bytes, purpose: int) -> bytes:
    return struct.pack("<8I", *chacha20(key, 0, MASK - purpose)[:8])


def scaled(random: int, n: int) -> int | None:
    wide = random * n
    low = wide & MASK
    return wide >> 64 if low >= n or low >= (MASK + 1 - n) % n else None


class Keyed:
    """Choices as a function of key, shard and sequence number."""

    def __init__(self, key: bytes, shard: int = 0) -> None:
        self.key, self.spill, self.shard = key, derive(key, 0), shard

    def at(self, seq: int) -> None:
        words = chacha20(self.key, seq, self.shard)
        self.words = [words[i] | words[i + 1] << 32 for i in range(0, 16, 2)]
        self.seq, self.block = seq, 0

    def u64(self) -> int:
        if not self.words:
            words = chacha20(self.spill, self.seq * (1 << 16) + self.block, self.shard)
            self.words = [words[i] | words[i + 1] << 32 for i in range(0, 16, 2)]
            self.block += 1
        return self.words.pop(0)

    def below(self, n: int) -> int:
        while (x := scaled(self.u64(), n)) is None:
            pass
        return x

    index = below

    def shuffle(self, items: list) -> None:
        for i in range(len(items) - 1, 0, -1):
            j = self.index(i + 1)
            items[i], items[j] = items[j], items[i]


def siphash(key: bytes, data: bytes) -> int:
    """SipHash-2-4."""
    k0, k1 = struct.unpack("<QQ", key[:16])
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def left(x, by):
        return (x << by | x >> 64 - by) & MASK

    def rounds(n):
        for _ in range(n):
            v[0], v[2] = v[0] + v[1] & MASK, v[2] + v[3] & MASK
            v[1], v[3] = left(v[1], 13) ^ v[0], left(v[3], 16) ^ v[2]
            v[0] = left(v[0], 32)
            v[2], v[0] = v[2] + v[1] & MASK, v[0] + v[3] & MASK
            v[1], v[3] = left(v[1], 17) ^ v[2], left(v[3], 21) ^ v[0]
            v[2] = left(v[2], 32)

    padded = data + bytes(-(len(data) + 1) % 8) + bytes([len(data) & 255])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


class Slots:
    """Open groups and their free slots; a group is [id, {list: left}, members, opened]."""

    TRIES, SCAN = 16, 1024

    def __init__(self) -> None:
        self.lists: dict[int, list] = {}
        self.groups: list = []

    def join(self, kind, quasi, draw):
        entries = self.lists.get(kind, [])
        if not entries:
            return None
        group = None
        for _ in range(self.SCAN if len(entries) > self.SCAN else self.TRIES):
            tried = entries[draw.index(len(entries))]
            if quasi not in tried[2]:
                group = tried
                break
        if group is None and len(entries) <= self.SCAN:
            fit = [g for g in entries if quasi not in g[2]]
            group = fit[draw.index(len(fit))] if fit else None
        if group is not None:
            self.fill(group, kind, quasi)
        return group

    def fill(self, group, kind, quasi):
        group[2].append(quasi)
        group[1][kind] -= 1
        if not group[1][kind]:
            self.unlist(group, kind)

    def unlist(self, group, kind):
        entries = self.lists[kind]
        at = next(i for i, entry in enumerate(entries) if entry is group)
        entries[at] = entries[-1]
        entries.pop()
        group[1][kind] = 0

    def open(self, number, seq, cells, member):
        group = [number, dict(cells), [], seq]
        for kind, _ in cells:
            self.lists.setdefault(kind, []).append(group)
        self.groups.append(group)
        if member is not None:
            self.fill(group, *member)
        return group

    def retire(self, before):
        while self.groups and self.groups[0][3] < before:
            group = self.groups.pop(0)
            for kind, left in group[1].items():
                if left:
                    self.unlist(group, kind)


class DelayFreeReference:
    """Algorithm 1 with late validation; groups are numbered in the order they are opened."""

    def __init__(self, draw, orders, l, pool, weights, retire_after=0, literal=0) -> None:
        self.draw, self.orders, self.l, self.pool, self.weights = draw, orders, l, pool, list(weights)
        self.retire_after, self.literal = retire_after, literal
        self.slots, self.opened, self.turn = Slots(), 0, None

    def push(self, seq, quasi, code):
        """The number of the tuple's group, and the candidates if it was opened."""
        if self.retire_after:
            self.slots.retire(max(0, seq - self.retire_after))
        self.draw.at(seq)
        group = self.slots.join(code, quasi, self.draw)
        if group is not None:
            return group[0], None
        cells = sorted(self.generate(code))
        group = self.slots.open(self.opened, seq, cells, (code, quasi))
        self.opened += 1
        return group[0], cells

    def generate(self, own):
        if self.literal:
            return self.literally(own)
        if self.pool == "matched":
            return [(code, 1) for code in self.systematic(own)]
        taken = [own]
        while len(taken) < self.l:
            taken.append(self.other(taken))
        return [(code, 1) for code in taken]

    def any(self):
        total = sum(self.weights)
        if self.pool == "uniform" or not total:
            return self.draw.index(len(self.weights))
        return self.pointed(range(len(self.weights)), self.draw.below(total))

    def pointed(self, order, point):
        for code in order:
            if point < self.weights[code]:
                return code
            point -= self.weights[code]
        raise AssertionError

    def other(self, taken):
        for _ in range(8):
            code = self.any()
            if code not in taken:
                return code
        weigh = [1 if self.pool == "uniform" else w for w in self.weights]
        rest = [code for code in range(len(weigh)) if code not in taken]
        total = sum(weigh[code] for code in rest)
        if not total:
            return rest[self.draw.index(len(rest))]
        point = self.draw.below(total)
        for code in rest:
            if point < weigh[code]:
                return code
            point -= weigh[code]
        raise AssertionError

    def systematic(self, own):
        turn = self.opened // max(1, len(self.weights) // 64)
        if turn != self.turn:
            self.turn, self.order = turn, list(range(len(self.weights)))
            self.orders.at(turn)
            self.orders.shuffle(self.order)
            self.ends, total = {}, 0
            for code in self.order:
                total += self.weights[code]
                self.ends[code] = total
        arc = self.weights[own]
        start = self.draw.below(ARC) if arc == 0 else (self.ends[own] - arc + self.draw.below(arc)) % ARC
        hit = [own]
        for i in range(self.l):
            code = self.pointed(self.order, start + i * ARC)
            if code != own:
                hit.append(code)
        if len(hit) > self.l:
            at = 1 + self.draw.index(self.l)
            hit[at] = hit[-1]
            hit.pop()
        return hit

    def literally(self, own):
        drawn = {own: 1}
        while len(drawn) < self.l or max(drawn.values()) * self.l > sum(drawn.values()):
            if sum(drawn.values()) > self.literal:
                raise RuntimeError
            code = self.any()
            drawn[code] = drawn.get(code, 0) + 1
        return list(drawn.items())
