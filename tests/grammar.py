"""Keyspaces drawn from a grammar of real naming: `python -m tests.grammar PORT [KEYS] [SEED] [PATTERNS]`.

What a measurement or a test of patterns claims must hold for names that nobody chose for it. So a `Grammar` draws its
patterns anew for each seed: from written conventions of teams, from what client libraries write (RQ, Celery, BullMQ,
django-redis, huey, Sidekiq, Spring Session, Laravel), and from free combinations of words and identifiers (integers
of varying length, snowflakes, hex and base62 of all lengths, UUIDs, ULIDs, dates, e-mail and IP addresses, slugs, flat
names that end in numbers, hash tags). Pattern sizes follow a Zipf law; the values of each pattern have a law of their
own, some of them with heavy tails.

The same seed, number of patterns and number of keys give the same names and values.
"""

from __future__ import annotations

import random
import re
import socket
import string
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Final

from rtui.demo.load import send
from rtui.demo.writes import Write
from tests.servers import Server, binaries, running

FEWEST_PATTERNS: Final = 5
MOST_PATTERNS: Final = 5_000
"""How many patterns a keyspace has where nobody says: between these, each order of magnitude as likely."""

CHUNK: Final = 20_000
"""Writes that are drawn before they are sent."""

DAY_S: Final = 86_400

_WORDS: Final = """
account activity address admin alert api app archive article asset audit auth avatar balance banner basket batch
billing board booking brand budget bundle cache campaign card cart catalog category channel chat checkout city comment
config contact content count coupon course currency customer daily dashboard data device dish draft email event export
favorite feature feed file filter flag follower friend game group hash history home hotel image inbox index inventory
invite invoice item job journal key label ledger level like limit link list location lock log login market media
member menu merchant message meta metric mobile news note notification offer online order page partner payment
permission phone photo plan player post preview price product profile promo push quest queue quota quote rank rate
recent recipe refresh region report request restaurant result review role room route rule sales scene schedule score
search seat secret segment sensor service session setting share shipment shop signup slot sms social source stage
state stats status stock store story stream summary survey tag task team temp tenant ticket timeline token topic tour
trade transfer trip unread upload usage user vendor verify video view visit wallet warehouse web webhook weekly
wishlist worker zone
"""
WORDS: Final = tuple(_WORDS.split())

BASE62: Final = string.digits + string.ascii_letters
CROCKFORD: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

Identifier = Callable[[random.Random], str]
"""Draws one identifier."""


def _letters(alphabet: str, least: int, most: int, rng: random.Random) -> str:
    return "".join(rng.choices(alphabet, k=rng.randint(least, most)))


def _letters_of(alphabet: str, length: int) -> Identifier:
    return partial(_letters, alphabet, length, length)


def _integer(most: int, rng: random.Random) -> str:
    return str(int(most ** rng.random()) if rng.random() < 0.5 else rng.randrange(most))


def _hex(length: int, rng: random.Random) -> str:
    return f"{rng.getrandbits(4 * length):0{length}x}"


def _uuid(rng: random.Random) -> str:
    digits = _hex(32, rng)
    return "-".join((digits[:8], digits[8:12], f"4{digits[13:16]}", f"a{digits[17:20]}", digits[20:]))


def _date(form: str, rng: random.Random) -> str:
    return form.format(rng.randint(2019, 2026), rng.randint(1, 12), rng.randint(1, 28), rng.randrange(24))


def _email(rng: random.Random) -> str:
    name = (
        rng.choice(WORDS) + rng.choice((".", "_", "")) + rng.choice(WORDS) + rng.choice(("", str(rng.randrange(9999))))
    )
    return f"{name}@{rng.choice(('example.com', 'mail.example.org', 'corp.example.co.uk'))}"


def _ip_v4(rng: random.Random) -> str:
    return ".".join(str(rng.randrange(256)) for _ in range(4))


def _ip_v6(rng: random.Random) -> str:
    return ":".join(f"{rng.getrandbits(16):x}" for _ in range(8)) if rng.random() < 0.5 else f"2001:db8::{_hex(4, rng)}"


def _slug(rng: random.Random) -> str:
    words = "-".join(rng.choices(WORDS, k=rng.randint(2, 4)))
    return words + (f"-{rng.randrange(10_000)}" if rng.random() < 0.5 else "")


def _kinds(rng: random.Random) -> list[Identifier]:
    """Return the identifiers that the patterns of one keyspace may have, with the lengths of this keyspace."""
    return [
        *(partial(_integer, 10 ** rng.randint(2, 12)) for _ in range(6)),
        lambda rng: str(rng.getrandbits(62) | 1 << 60),
        lambda rng: f"{rng.randrange(10**9):012d}",
        *(partial(_hex, rng.choice((4, 6, 8, 10, 12, 16, 24, 32, 40, 64))) for _ in range(3)),
        partial(_letters, "0123456789abcdef", 3, 20),
        partial(_letters, BASE62, 4, 32),
        _letters_of(BASE62, rng.randint(5, 30)),
        _letters_of(BASE62 + "_-", rng.choice((21, 22, 32, 43))),
        _uuid,
        _uuid,
        lambda rng: rng.choice("01234567") + _letters(CROCKFORD, 25, 25, rng),
        partial(_date, "{0}-{1:02}-{2:02}"),
        partial(_date, "{0}{1:02}{2:02}"),
        partial(_date, "{0}-{1:02}"),
        partial(_date, "{0}-{1:02}-{2:02}T{3:02}"),
        _email,
        _ip_v4,
        _ip_v6,
        _slug,
        lambda rng: f"R{_date('{0}{1:02}{2:02}', rng)}{rng.randrange(10**6):06d}",
        lambda rng: f"{rng.choice('ABCDE')}{_letters(string.ascii_uppercase, 1, 2, rng)}-{rng.randrange(10**7):07d}",
    ]


_CONVENTIONS: Final = """
app:session:{uuid} app:token:refresh:{int} app:token:blacklist:{hex} app:temp:otp:{int} app:rate:login:{ip}
app:cache:{word}:detail:{int} app:cache:{word}:list:{hex} app:cache:{word}:count app:tags:{word}
app:lock:{word}:{int} app:queue:email:pending app:rank:score:board:{word} app:analytics:daily:login:{date}
PRO:USER:UID:{int} user:{int} user:list user:counter user:index:email:{email} user:{int}:cart user:{int}:orders
cart:{int}:items cartDetail:{int} cartDetail:index:cart:{int} order:{int}:details order:index:paymentRef:{token}
role:{int}:permissions category:{int}:dishes dish:index:category:{int} cache:cart:{int}
ecm:handholdIdCardInfo:retry:{token} ecm:product:create:{int} lock:product:verify:{token} lock:p:{int} p:{int}
rq:job:{uuid} rq:queue:{word} rq:finished:{word} rq:wip:{word} rq:results:{uuid} rq:worker:{hex}
celery-task-meta-{uuid} _kombu.binding.{word} unacked_mutex bull:{word}:{int} bull:{word}:wait bull:{word}:{int}:logs
bull:{word}:repeat:{hex}:{int} :1:views.decorators.cache.cache_page..GET.{hex}.{hex}.en-us.UTC :1:{word}_{int}
huey.results.{word}:{uuid} huey.redis.{word} stat:processed:{date} queue:{word} spring:session:sessions:{uuid}
spring:session:sessions:expires:{uuid} spring:session:expirations:{int} laravel_database_laravel_cache:{hex}
laravel_database_queues:{word} sess:{token} socket.io#/#{token}# rank_daily_{int} page:{int} level{int} {tag:int}:{word}
"""
CONVENTIONS: Final = tuple(_CONVENTIONS.split())
"""Patterns of teams' written conventions and of client libraries; a word in braces is drawn."""

TYPES: Final = ("string",) * 12 + ("hash",) * 4 + ("set",) * 2 + ("zset",) * 2 + ("list",) * 2 + ("stream",)


@dataclass(slots=True)
class Pattern:
    """How the keys of one pattern are named and what they hold."""

    parts: list[str | Identifier]
    key_type: str
    size: Callable[[], float]
    """Draws the bytes of a value."""
    ttl_s: Callable[[], float] | None
    """Draws a TTL; None where the keys do not expire."""

    def name(self, rng: random.Random) -> bytes:
        return "".join(part if isinstance(part, str) else part(rng) for part in self.parts).encode()


class Grammar:
    """The patterns of one keyspace."""

    def __init__(self, seed: int, patterns: int | None = None) -> None:
        self.rng = rng = random.Random(seed)
        if patterns is None:
            patterns = round(FEWEST_PATTERNS * (MOST_PATTERNS / FEWEST_PATTERNS) ** rng.random())
        self._kinds = _kinds(rng)
        self._separators = [rng.choice("::::::./|_-") for _ in range(3)]
        self._apps = rng.choices(WORDS, k=max(1, patterns // 40))
        written = rng.sample(CONVENTIONS, min(len(CONVENTIONS), patterns // 2))
        self.patterns = [self._pattern(self._written(one)) for one in written]
        self.patterns += [self._pattern(self._free()) for _ in range(patterns - len(written))]
        rng.shuffle(self.patterns)
        exponent = rng.uniform(0.6, 1.4)
        self._weights = {id(one): 1 / (rank + 1) ** exponent for rank, one in enumerate(self.patterns)}

    def writes(self, keys: int) -> Iterator[Write]:
        """Yield the writes of so many keys, in random order; fewer if the patterns have no more names."""
        for pattern, name in self.drawn(keys):
            yield from self._key(pattern, name)

    def drawn(self, keys: int) -> Iterator[tuple[Pattern, bytes]]:
        """Yield the patterns and names of so many keys, in random order; fewer if there are no more names."""
        rng, seen = self.rng, set[bytes]()
        patterns = list(self.patterns)
        while patterns and len(seen) < keys:
            weights = list(accumulate(self._weights[id(one)] for one in patterns))
            drawn, repeated = Counter[int](), Counter[int]()
            for pattern in rng.choices(patterns, cum_weights=weights, k=min(CHUNK, keys - len(seen))):
                name = pattern.name(rng)
                drawn[id(pattern)] += 1
                if name in seen:
                    repeated[id(pattern)] += 1
                else:
                    seen.add(name)
                    yield pattern, name
            patterns = [one for one in patterns if repeated[id(one)] * 2 <= drawn[id(one)]]

    def _key(self, pattern: Pattern, name: bytes) -> Iterator[Write]:
        size = max(1, min(200_000, int(pattern.size())))
        pieces = [b"%d" % self.rng.getrandbits(40) for _ in range(min(600, 1 + size // 20))]
        match pattern.key_type:
            case "string":
                yield "SET", name, b"v" * size
            case "hash":
                yield "HSET", name, *(part for at, piece in enumerate(pieces) for part in (b"f%d" % at, piece))
            case "set":
                yield "SADD", name, *pieces
            case "zset":
                yield "ZADD", name, *(part for at, piece in enumerate(pieces) for part in (b"%d" % at, piece))
            case "list":
                yield "RPUSH", name, *pieces
            case "stream":
                yield "XADD", name, b"*", b"what", b"v" * min(size, 2_000)
        if pattern.ttl_s is not None:
            yield "PEXPIRE", name, max(60_000, int(pattern.ttl_s() * 1000))

    def _pattern(self, parts: list[str | Identifier]) -> Pattern:
        rng = self.rng
        middle, spread = 20 * 40 ** rng.random(), rng.uniform(0, 1.5)
        size: Callable[[], float] = partial(rng.lognormvariate, 0, spread)
        if rng.random() < 0.1:
            size = partial(rng.paretovariate, rng.uniform(0.8, 2))
        lifetime = 600 * (30 * DAY_S / 600) ** rng.random()
        jitter = rng.choice((0.001, 0.1, 0.5))
        return Pattern(
            parts,
            rng.choice(TYPES),
            lambda: middle * size(),
            (lambda: lifetime * (1 - jitter * rng.random())) if rng.random() < 0.5 else None,
        )

    def _written(self, text: str) -> list[str | Identifier]:
        """Turn the text of a pattern into its parts."""
        rng = self.rng
        drawn: dict[str, Identifier] = {
            "{word}": lambda rng: rng.choice(WORDS),
            "{int}": partial(_integer, 10 ** rng.randint(3, 9)),
            "{uuid}": _uuid,
            "{hex}": partial(_hex, rng.choice((12, 32, 40, 64))),
            "{token}": partial(_letters, BASE62, 10, 30),
            "{date}": partial(_date, rng.choice(("{0}-{1:02}-{2:02}", "{0}{1:02}{2:02}"))),
            "{ip}": _ip_v4 if rng.random() < 0.7 else _ip_v6,
            "{email}": _email,
            "{tag:int}": lambda rng: f"{{{_integer(10**6, rng)}}}",
        }
        return [drawn.get(part, part) for part in re.split(r"(\{[a-z:]+\})", text) if part]

    def _free(self) -> list[str | Identifier]:
        """Compose a pattern: words, then identifiers and words in turn."""
        rng = self.rng
        kind = partial(rng.choice, self._kinds)
        word = partial(rng.choice, WORDS)
        if rng.random() < 0.08:  # flat
            return [word(), rng.choice(("_", "-", ".", "")), partial(_integer, 10 ** rng.randint(2, 7))]
        if rng.random() < 0.06:  # an identifier alone
            return [kind()]
        separator = rng.choice(self._separators)
        parts: list[str | Identifier] = [rng.choice(self._apps)]
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            parts += [separator, word() + rng.choice(("", "", "", word().title()))]
        for _ in range(rng.choice((0, 1, 1, 1, 1, 2, 2, 3))):
            tag = rng.random() < 0.05
            parts += [separator, "{" if tag else "", kind(), "}" if tag else ""]
            if rng.random() < 0.4:
                parts += [separator, word()]
        return parts


def load(connection: socket.socket, grammar: Grammar, keys: int) -> None:
    """Write the keys down a connection; raises RuntimeError when a write is refused."""
    errors = send(connection, grammar.writes(keys))
    if errors:
        raise RuntimeError(f"the server refused writes: {errors[:3]}")


@contextmanager
def grown(server: str, keys: int, seed: int, *arguments: str, patterns: int | None = None) -> Iterator[Server]:
    """A server of this version that holds a keyspace of the grammar."""
    with running(binaries()[server], *arguments) as found:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(found.socket)
            load(connection, Grammar(seed, patterns), keys)
        yield found


if __name__ == "__main__":
    numbers = [int(one) for one in sys.argv[1:]]
    with socket.create_connection(("127.0.0.1", numbers[0])) as to_load:
        chosen = Grammar(numbers[2] if len(numbers) > 2 else random.getrandbits(32), *numbers[3:4])
        load(to_load, chosen, numbers[1] if len(numbers) > 1 else 1_000_000)
