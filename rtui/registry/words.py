"""Words in names: which style they are written in, and which of them are abbreviations.

`userProfile`, `user_profile` and `UserProfile` are the words `user` and `profile`. A word is an abbreviation if it is a
usual one (`cfg`, `msg`), has no vowel (`prd`), or has the consonants of a full word of the glossary without being it
(`sessn` where that has `session`). Names of things that are always written so, such as `id`, `url` or `jwt`, are none.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from enum import IntFlag
from typing import Final


class Style(IntFlag):
    """How the words of a name are joined; names of one short word have several."""

    LOWER = 1
    """No capital letters."""
    CAMEL = 2
    PASCAL = 4
    SNAKE = 8
    KEBAB = 16
    UPPER = 32
    """No small letters."""


STYLES: Final[dict[str, Style]] = {
    "lower": Style.LOWER,
    "camel": Style.CAMEL,
    "pascal": Style.PASCAL,
    "snake": Style.SNAKE,
    "kebab": Style.KEBAB,
    "upper": Style.UPPER,
}
"""By the names that registries use."""

ALL_STYLES: Final = Style(63)

_EXPRESSIONS: Final = (
    (Style.LOWER, re.compile(rb"[^A-Z]*").fullmatch),
    (Style.CAMEL, re.compile(rb"[a-z][A-Za-z0-9]*").fullmatch),
    (Style.PASCAL, re.compile(rb"[A-Z](?:[A-Za-z0-9]*[a-z][A-Za-z0-9]*)?").fullmatch),
    (Style.SNAKE, re.compile(rb"[a-z0-9]+(?:_[a-z0-9]+)*").fullmatch),
    (Style.KEBAB, re.compile(rb"[a-z0-9]+(?:-[a-z0-9]+)*").fullmatch),
    (Style.UPPER, re.compile(rb"[^a-z]*").fullmatch),
)


def styles_of(name: bytes) -> Style:
    """Return the styles in which a name may be written; all of them for one without ASCII letters."""
    if not any(65 <= byte <= 90 or 97 <= byte <= 122 for byte in name):
        return ALL_STYLES
    found = Style(0)
    for style, fits in _EXPRESSIONS:
        if fits(name):
            found |= style
    return found


_WORD: Final = re.compile(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def words_of(name: bytes) -> list[bytes]:
    """Return the words of a name in small letters: what lies between capitals, digits and other characters."""
    return [word.lower() for word in _WORD.findall(name)]


_USUAL: Final = """
acc acct addr admin amt app arg args attr auth avg btn calc cat cfg chk cmd cnt col conf config conn ctx cur curr cust
db def del desc dest dev dict dir dist doc docs dst dup elem env err evt exec exp ext fav fmt fn freq func gen grp hdr
hist idx img impl incr info init inst inv itm lang lbl len lib loc log lst max mem mgr mid min misc mod msg mtd mul nav
nbr neg net notif nr num obj opt ord org orig param params pct perf perm pkg pos pref prev priv prob proc prod prof proj
prop props prt pub pwd qty qry ref refs reg rel rem repo req res resp ret rev rnd sched sec sel seq sess sig sim src srv
stat stats std str sub svc sync sys tab tbl tel temp tmp tot tran trans txn txt typ upd usr util val var ver vol warn wh
wrk wkr
"""

_COMMON_WORDS: Final = """
admin app arg args auth avg cat config cur def del dev dist doc docs env exp info init inst lang len lib loc log max mid
min mod nav net opt org pos pub ref refs rel rem res ret rev sec sel sim stat stats sub sync tab temp trans val var ver
vol warn sig seq db id
"""

ABBREVIATIONS: Final = frozenset(word.encode() for word in set(_USUAL.split()) - set(_COMMON_WORDS.split()))
"""Usual abbreviations that are no words by themselves."""

_NAMES: Final = """
aes api arn aws bcc bgp bmp bpm cc cdn cpu crc crm css csrf csv db dns dom dpi dvd erp faq fcm ftp gcp gdpr gif gps gpu
grpc gtm hls hr hsts html http https ip ipv4 jpg js json jsx jvm jwt kpi kyc lbs ldap lfu lru mac md md5 mfa mms mp3 mp4
mqtt ms mx nft nlp npc npm nps ntp oauth oidc os otp pc pdf php pk png pos ppt pr psp ptt pvp qps qr rbac rdb rdbms rgb
rpc rq rss rsvp rtc s3 sdk seo sha sku sla sms smtp sms sns soap sql sqs ssd ssh ssl sso sse svg tcp tls totp ts tsv ttl
tv tx udp ui uid upc uri url usb utc uuid ux vat vcs vip vm vpc vpn wms www xls xml xsrf yml zip
"""

NAMES: Final = frozenset(_NAMES.encode().split())
"""What is always written so."""

_VOWELS: Final = b"aeiouy"
LONGEST_ABBREVIATION: Final = 6
"""A longer word without a vowel is a code."""


class Glossary:
    """The abbreviations that a team allows."""

    def __init__(self, words: Iterable[tuple[bytes, bytes]]) -> None:
        """`words` are abbreviations and what each stands for."""
        pairs = [(short.lower(), full.lower()) for short, full in words]
        self.allowed = frozenset(short for short, _ in pairs)
        self._full = frozenset(word for _, full in pairs for word in full.split())
        self._skeletons = frozenset(word.translate(None, _VOWELS) for word in self._full if len(word) > 3)

    def is_foreign(self, word: bytes) -> bool:
        """Whether a word, in small letters, is an abbreviation that is not allowed."""
        if len(word) < 2 or word in self.allowed or word in self._full or word in NAMES:
            return False
        if word in ABBREVIATIONS:
            return True
        skeleton = word.translate(None, _VOWELS)
        if skeleton == word:
            return len(word) <= LONGEST_ABBREVIATION
        return skeleton in self._skeletons and word.rstrip(b"s") not in self._full and word not in self._plural

    def table(self) -> dict[bytes, int]:
        """Return what decides `is_foreign`, for an engine: words and skeletons, with bits for what they are.

        1: allowed, a full word or a name; 2: a usual abbreviation; 4: the skeleton of a full word; 8: a full word;
        16: the plural of one.
        """
        found: defaultdict[bytes, int] = defaultdict(int)
        fine = self.allowed | self._full | NAMES
        for bit, words in enumerate((fine, ABBREVIATIONS, self._skeletons, self._full, self._plural)):
            for word in words:
                found[word] |= 1 << bit
        return dict(found)

    @property
    def _plural(self) -> frozenset[bytes]:
        return frozenset(word[:-1] + b"ies" for word in self._full if word.endswith(b"y"))
