"""What caches of web applications write, and names that begin with a separator.

Flask-Caching: https://flask-caching.readthedocs.io, "How caching works". Django: "Cache key transformation" in its
documentation, `key_prefix:version:key`, which django-redis keeps.
"""

from __future__ import annotations

from hashlib import md5

from flask import Flask
from flask_caching import Cache

from rtui.registry.expectations import FoundKey
from tests.clients.written import keyspace, patterns_of, registered
from tests.servers import Server

PAGES = 20
WEEK_MS = 604_800_000


def test_views_and_functions_of_flask(valkey: Server) -> None:
    app = Flask("shop")
    cache = Cache(app, config={"CACHE_TYPE": "RedisCache", "CACHE_REDIS_URL": valkey.url})

    def product(number: int) -> str:
        return str(number)

    def search() -> str:
        return "found"

    def price(number: int) -> int:
        return number

    app.add_url_rule("/product/<int:number>", view_func=cache.cached(timeout=60)(product))
    app.add_url_rule("/search", view_func=cache.cached(query_string=True)(search))
    priced = cache.memoize(50)(price)
    client = app.test_client()
    for number in range(PAGES):
        assert client.get(f"/product/{number}").text == str(number)
        client.get(f"/search?q={number}")
    with app.app_context():
        for number in range(PAGES):
            priced(number)
        cache.set("settings", 1)
    found = keyspace(valkey)

    assert patterns_of(found, (b"/",))["flask_cache_view//product/<id>"] == PAGES
    assert patterns_of(found)["flask_cache_view//product/<n>"] == PAGES
    assert dict(registered("flask-caching", found)) == {
        "flask_cache_view/<**>": 2 * PAGES,
        "flask_cache_<function>_memver": 1,
        "flask_cache_<**>": PAGES + 1,
    }


def test_names_of_django_begin_with_the_separator() -> None:
    digests = [md5(b"%d" % number, usedforsecurity=False).hexdigest() for number in range(PAGES)]
    names = [
        *(f":1:product:{number}" for number in range(PAGES)),
        *(f":1:django.contrib.sessions.cache{digest}" for digest in digests),
        *(f":1:template.cache.sidebar.{digest}" for digest in digests),
        *(f":1:views.decorators.cache.cache_page..GET.{digest}.{digest}.en-us.UTC" for digest in digests),
    ]
    found = {name.encode(): FoundKey(b"string", WEEK_MS) for name in names}
    assert (
        patterns_of(found).items()
        >= {
            ":1:product:<id>": PAGES,
            ":1:django.contrib.sessions.cache<hash>": PAGES,
            ":1:template.cache.sidebar.<hash>": PAGES,
            ":1:views.decorators.cache.cache_page..GET.<hash>.<hash>.en-us.UTC": PAGES,
        }.items()
    )
    assert set(registered("django", found).values()) == {PAGES}
