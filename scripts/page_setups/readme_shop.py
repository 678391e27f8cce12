"""A search over the texts of brook-news, as a client of a shop."""

import weir

news = weir.load("brook-news").corpus


def my_search(text: str, k: int) -> list[tuple[str, int]]:
    words = set(text.lower().split())
    return sorted(
        ((d, len(words & set(t.lower().split()))) for d, t in zip(news.ids, news.text, strict=True)),
        key=lambda p: -p[1],
    )[:k]
