"""Lesson 11, Vision Transformer: its beats, questions and bets."""

from course_lib.classroom.bets import Bet
from course_lib.classroom.cards import Beat
from course_lib.classroom.quizzes import Number, Quiz

BEATS = (
    Beat("A picture, read as words", 6, holds=("draw",)),
    Beat("The bet: knowing nothing about pictures", 4, holds=("words", "data")),
    Beat("Sixteen words, by hand", 5, holds=("matrix", "shuffled", "plane")),
    Beat("Write it", 17, holds=("patchify", "unpatchify", "tokens")),
    Beat("Train yours", 5, holds=("mixer",)),
    Beat("Look inside and break it", 26, holds=("rollouts", "baseline", "hide", "attention_distance", "fit_positions",
                                                "larger", "bug")),
    Beat("What to remember", 6, holds=("choose", "cheaper", "class")),
    Beat("Stretch: the Mixer's block; then the assignment", 8, holds=("mixer_block",), optional=True),
)  # fmt: skip

QUIZZES = {
    "words": Number(
        "A picture of 224 x 224 pixels is cut into patches of 16 x 16. How many tokens does the encoder read, the "
        "class token included?",
        answer=197,
        tolerance=0.4,
        why="$224 / 16 = 14$ patches in each direction, $14 \\cdot 14 = 196$, and the class token. One token for each "
        "pixel would be 50,176, and $50{,}176^2$ pairs for each head of each layer: some 65,000 times as many.",
        near={
            196: "Those are the patches; the class token comes on top.",
            15: "14 patches lie in a row, and there are 14 rows.",
            3136: "That is 56 x 56: patches of 4 x 4 pixels.",
            50_177: "That would be one token for each pixel.",
        },
    ),
    "matrix": Number(
        "ViT-B/16 reads colour pictures: patches of 16 x 16 pixels with 3 channels each. Its tokens are 768 numbers "
        "wide. How many weights does the matrix $E$ have (without the bias)?",
        answer=589_824,
        tolerance=600,
        why="A patch is $16 \\cdot 16 \\cdot 3 = 768$ numbers, and $E$ makes 768 numbers of them: "
        "$768 \\cdot 768 = 589{,}824$. All patches share it: a place has no weights of its own there.",
        near={
            196_608: "A pixel has three numbers here, red, green and blue.",
            768: "That is how many numbers go in. Each of the 768 numbers that come out has its own weight for each.",
        },
    ),
    "plane": Quiz(
        "In a fresh ViT of 4 x 4 patches, before any training: what knows that patch 6 lies just below patch 2?",
        options={
            "The order of the tokens: 2 and 6 are four apart": "Attention is blind to the order of its tokens "
            "(lesson 05). Shuffled together with their positions, they give the same answer.",
            "The attention: it compares each patch with its neighbours": "It compares each patch with *every* patch, "
            "in the same way.",
            "Nothing does": "Sixteen position vectors are drawn at random, like the words of a language nobody speaks. "
            "That a picture has two dimensions has to be learned. A convolution has it built in: its kernel covers "
            "neighbours.",
        },
        answer=2,
    ),
    "mixer": Quiz(
        "A Mixer has no position embeddings, and its ViT twin needs them. Why?",
        options={
            "Its token-mixing MLP has weights of its own for each place": "A first-layer weight belongs to *patch 6*, "
            "whatever stands there: place is built in. The price: a picture of another size has other places, and the "
            "Mixer cannot read it.",
            "Its patches are larger": "They are the same patches.",
            "MLPs do not care about places": "The channel-mixing one does not. The other one is nothing but places.",
        },
        answer=0,
    ),
    "baseline": Quiz(
        "Ten rollout maps, all bright on the digit. *So the network found the digits*, says a colleague; they "
        "beat random numbers, too. With what would you compare next?",
        options={
            "With other random numbers": "A low bar: whatever prefers the middle of the picture passes it.",
            "With the mean map, the same for all pictures": "If it does as well, the maps say where digits *usually* "
            "are. Here it gets most of the way: the digits stand near the middle. Only what the picture's own map adds "
            "was found in *this* picture.",
            "With the maps of the last block alone": "Another map, and the same question to it.",
        },
        answer=1,
    ),
    "bug": Quiz(
        "A colleague fits the learned positions of 7 x 7 patches (and a class token) to 11 x 11 patches. It runs, and "
        "accuracy falls badly. What is wrong?",
        options={
            "Linear interpolation is too coarse; it should be bicubic": "That costs little. Something worse happens to "
            "the table.",
            "The table is stretched as one long line": "Behind the last patch of a row stands the first of the next: "
            "they are blended, and rows of 7 are no rows of 11. The class token is smeared into the first patch, too. "
            "Take it off, fold the rest into 7 x 7, resize it as a picture, unfold.",
            "`pos_embed` must not be changed after training": "It may; that is what the interpolation is for.",
        },
        answer=1,
        kind="bug",
        code="""
table = pos_embed.mT                 # (1, D, 50)
table = F.interpolate(table, size=122, mode="linear")
return table.mT                      # (1, 122, D)
""",
    ),
    "cheaper": Number(
        "Half of 196 patches are dropped before the first block. By which factor do the products of queries with keys "
        "become cheaper (leave the class token out)?",
        answer=4,
        tolerance=0.1,
        why="$196^2 / 98^2 = 4$. What is done for each token by itself, projections and MLP, becomes two times "
        "cheaper. Lesson 13 makes a method of it: its encoder reads a quarter of the patches.",
        near={
            2: "That holds for projections and MLPs. Here *pairs* are counted.",
            0.25: "That is what is left of them.",
        },
    ),
    "choose": Quiz(
        "You have 2,000 labelled pictures of leaves, and no more. What would you try first?",
        options={
            "A large ViT from scratch: it is the better architecture": "It has to learn from 2,000 pictures even what "
            "a neighbour is.",
            "A small ViT from scratch, with the best position codes": "Still all from 2,000 pictures.",
            "A network that was pretrained on many pictures, fine-tuned": "Then its locality is already learned, or "
            "built in: a pretrained ViT or ResNet (lesson 01). From scratch a ResNet would be the better bet here.",
        },
        answer=2,
    ),
    "class": Quiz(
        "From an earlier lesson: where did the class token come from?",
        options={
            "From BERT's `[CLS]`, a token without a word of its own, in front of every sentence": "It asks all "
            "others and gathers what the task needs (lesson 07). ViT's appendix D.3 shows that the mean of all patches "
            "does as well, with another learning rate.",
            "From GPT's first token": "Under a causal mask the first token sees nothing but itself.",
            "From the translator's decoder, which begins with a start sign": "That one begins a sentence to be "
            "written. Nothing is written here.",
        },
        answer=0,
    ),
}

BETS = {
    "data": Bet(
        "500 pictures of digits to learn from, and no more. A small ResNet, whose convolutions know what a neighbour "
        "is, names about 96 % of new ones right. How many does a ViT?",
        low=0,
        high=100,
        unit="%",
    ),
    "shuffled": Bet(
        "This ViT names 99 % of clean digits right. Now the 16 patches of each picture change places at random, and "
        "the positions stay where they were. How many are right?",
        low=0,
        high=100,
        unit="%",
    ),
    "rollouts": Bet(
        "Our ViT names about 95 % of digits on weak textures right. For each picture we drop half of its 16 patches, "
        "those of which least reached the class token. How many are right then?",
        low=0,
        high=100,
        unit="%",
    ),
    "larger": Bet(
        "A ViT learned digits of 28 x 28 pixels, with 7 x 7 patches; it names about 98 % right. Now they are 44 pixels "
        "a side: 11 x 11 patches, positions interpolated, no further training. How many are right?",
        low=0,
        high=100,
        unit="%",
    ),
}
