"""Printed text on a slide that shows no code."""

import re

import pytest

from course_lib.lectures.printed import printed_html


def rows(html):
    """The cells of each row of the tables."""
    found = re.findall(r"<tr>(.*?)</tr>", html)
    return [[re.sub("<.*?>", "", cell) for cell in re.findall(r"<td.*?>(.*?)</td>", row)] for row in found]


@pytest.mark.parametrize(
    ("printed", "cells"),
    [
        ("nats, the first time  3.26\nnats, the second time 3.20\n",
         [["nats, the first time", "3.26"], ["nats, the second time", "3.20"]]),
        ("vit_tiny   12 blocks, D  192,  3 heads,   5.7 million\nvit_large  24 blocks, D 1024, 16 heads, 304.3 million",
         [["vit_tiny", "12 blocks", "D", "192", "3 heads", "5.7 million"],
          ["vit_large", "24 blocks", "D", "1024", "16 heads", "304.3 million"]]),
        ("with no codes: 4.28\nwith: 1.18", [["with no codes", "4.28"], ["with", "1.18"]]),
        ("who: the judge reads . -> the judge\nkind: it is . -> thing",
         [["who", "the judge reads .", "the judge"], ["kind", "it is .", "thing"]]),
        ("w.q_proj   (128, 384)\nw.ln       (128,)\nsame: True", [["w.q_proj", "(128, 384)"], ["w.ln", "(128,)"]]),
        ("tensor([[ 0,  1],\n        [12, 13]], dtype=torch.int32)\n", [["0", "1"], ["12", "13"]]),
    ],
)  # fmt: skip
def test_what_is_aligned_is_a_table(printed, cells):
    html = printed_html(printed)
    assert rows(html) == cells and "tensor(" not in html and "<pre" not in html


def test_sentences_are_sentences_and_what_was_wrapped_is_one_line():
    html = printed_html("if the file does not exist, the file will be read, the file will be\n    read\nit <says> so\n")
    assert rows(html) == []
    assert re.findall("<p>(.*?)</p>", html) == [
        "if the file does not exist, the file will be read, the file will be read", "it &lt;says&gt; so",
    ]  # fmt: skip


def test_numbers_stand_right_and_names_in_the_typeface_of_code():
    html = printed_html("in_proj     9\nout_proj  192\n")
    assert '<td class="number">192</td>' in html and "<code>in_proj</code>" in html
