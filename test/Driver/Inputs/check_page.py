# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_page.py PAGE [--points N]: whether a page is whole (its tags are closed in order), needs nothing from elsewhere, and has
a title and a description for each plot and heads for its tables. With --points, how many points its one plot has."""

import argparse
import html.parser
import pathlib

EMPTY = {"meta", "line", "circle", "polyline"}


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.counts, self.ids, self.labels, self.heats = [], {}, [], [], 0
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_startendtag(self, tag, attrs):
        self.look(tag, dict(attrs))

    def handle_starttag(self, tag, attrs):
        self.look(tag, dict(attrs))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> out of order"

    def look(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        assert tag not in ("script", "link", "img", "iframe"), tag
        assert not {"src", "href", "onload", "onclick"} & attrs.keys(), attrs
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if tag == "svg":
            assert attrs["role"] == "img"
            self.labels += attrs["aria-labelledby"].split()
        if "heat" in attrs.get("class", ""):
            assert attrs["title"]
            self.heats += 1
        if tag == "th":
            assert attrs["scope"] in ("row", "col")


def check(path):
    text = pathlib.Path(path).read_text()
    page = Page(text)
    assert len(set(page.ids)) == len(page.ids) and set(page.labels) <= set(page.ids)
    assert page.counts.get("svg", 0) * 2 == len(page.labels) and page.counts["caption"] == page.counts["table"]
    assert "prefers-color-scheme: dark" in text and "url(" not in text and "@import" not in text
    return page


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("page")
    parser.add_argument("--points", type=int)
    options = parser.parse_args()
    found = check(options.page).counts.get("circle", 0)
    assert options.points in (None, found), found
