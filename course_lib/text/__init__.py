"""From text to numbers and back."""

from course_lib.text.bpe import ByteLevelBPE, SubwordBPE
from course_lib.text.characters import CharacterTokenizer
from course_lib.text.splitting import BertSplitter
from course_lib.text.tokenizer import Tokenizer, pad_batch
from course_lib.text.wordpiece import WordPiece
from course_lib.text.words import WordTokenizer

__all__ = [
    "BertSplitter",
    "ByteLevelBPE",
    "CharacterTokenizer",
    "SubwordBPE",
    "Tokenizer",
    "WordPiece",
    "WordTokenizer",
    "pad_batch",
]
