"""Lesson 12, Swin Transformer: its beats, questions and bets."""

from course_lib.classroom.bets import Bet
from course_lib.classroom.cards import Beat
from course_lib.classroom.quizzes import Number, Quiz

BEATS = (
    Beat("A picture in windows", 6, holds=("maps", "reader")),
    Beat("The bet: twice the side, how much more work?", 6, holds=("pairs", "cost")),
    Beat("Windows that move, by hand", 5, holds=("corner", "padding")),
    Beat("Write it", 22, holds=("in_windows", "shift_mask", "position_index", "bug")),
    Beat("Train yours", 3, holds=("reads",)),
    Beat("Look inside and break it", 18, holds=("reach", "shifted", "sum", "patch_merging", "switches", "merged")),
    Beat("What to remember", 4, holds=("which", "local")),
    Beat("Stretch: the price, written down; then the assignment", 8, holds=("attention_cost",), optional=True),
)

QUIZZES = {
    "pairs": Number(
        "A picture of 224 x 224 pixels in patches of 4 x 4 is a map of 56 x 56 places. In windows of 7 x 7, each place "
        "attends to its own window only. How many pairs of a query and a key are left, in each head of a layer?",
        answer=153_664,
        tolerance=100,
        why="8 x 8 = 64 windows of $49^2 = 2{,}401$ pairs each. All with all would be $3{,}136^2 = 9{,}834{,}496$: 64 "
        "times as many, as many as there are windows.",
        near={
            2401: "That is one window. There are 8 x 8 of them.",
            3136: "Those are the places. Each of them meets 49 keys.",
            21_952: "7 places in a row of a window, but 49 in a window.",
        },
    ),
    "corner": Number(
        "Windows of 4 x 4, moved by 2: look at the bottom right window of panel 3. To how many of its 16 places may "
        "each one attend?",
        answer=4,
        why="Four pieces of 2 x 2 meet there, from the four corners of the picture: 4 of 16 for each place, 64 pairs "
        "of 256 in all.",
        near={
            16: "That is so in the top left window, where all were neighbours before.",
            8: "That is so in the two windows at one border. The corner has two borders.",
            64: "Those are the pairs of the whole window.",
        },
    ),
    "padding": Number(
        "The naive way: no roll. Move the windows by half of one, pad the border pieces to whole windows, and hide the "
        "padding. A map of 2 x 2 windows then takes how many windows?",
        answer=9,
        why="3 x 3: a half one at each end. That is 2.25 times the work (Liu et al. 2021, section 3.2). Rolled, it "
        "stays at 4. On large maps the difference fades: 8 x 8 windows become 81, not 64.",
        near={
            4: "That is the rolled map. Padded, there is half a window more at each end.",
            5: "Half a window more at each end, in both directions.",
            6: "The same happens in the other direction.",
            16: "Half a window at each end makes one more in each direction: 2 becomes 3.",
        },
    ),
    "bug": Quiz(
        "A colleague's block with shifted windows. Shapes fit, and it learns, somewhat. What is wrong?",
        options={
            "The mask is for the unshifted map": "It is for the rolled map, and that is what is cut here.",
            "Nothing: the next block rolls it back": "The next block rolls nothing back. x kept its places, and "
            "`found` was added beside them.",
            "The map is not rolled back, so what is added to x stands in another place": "The residual stream keeps "
            "its places; what attention found is off by the shift, and what came around is added at the far end. "
            "`cyclic_shift(found, -shift)` is missing.",
        },
        answer=2,
        kind="bug",
        code="""
moved = cyclic_shift(norm(x), shift)
found = in_windows(moved, size,
                   lambda w: attend(w, mask=mask))
x = x + found
x = x + mlp(norm2(x))
""",
    ),
    "sum": Quiz(
        "Windows that never move, then the mean over all places and a linear map. Which question about two windows can "
        "such a net **not** answer, however long it learns?",
        options={
            "Is at least one of the two marks light?": "A sum can do that: each window adds a large number for a light "
            "mark, and the class is read off a threshold.",
            "Are the two marks alike?": "light-light and dark-dark must score high, the mixed pairs low. But with "
            "f(left) + g(right) both groups have the same sum of scores: XOR, the oldest trap of linear models.",
            "Are there more light marks than dark ones?": "Counting is adding: a mean can do that.",
        },
        answer=1,
    ),
    "merged": Quiz(
        "Patch merging makes one place of 2 x 2. A map of h x w places of C numbers becomes one of h/2 x w/2 places of "
        "2C. What happens to the number of *numbers* in the map, and to the work of a block?",
        options={
            "Half as many numbers, and about as much work": "Four C side by side become 2C: half are left. The large "
            "maps of a block cost places times width squared: a quarter times four.",
            "As many numbers, and a quarter of the work": "4C would keep them all. A linear map makes 2C of them.",
            "A quarter of the numbers, and a quarter of the work": "The width doubles: from C to 2C.",
        },
        answer=0,
    ),
    "which": Quiz(
        "You have to outline tumours on slides of 4,000 x 4,000 pixels. What speaks for windows and stages, and not "
        "for a plain ViT with patches of 16?",
        options={
            "A plain ViT cannot take such a picture": "Its positions can be interpolated (lesson 11). It could, at a "
            "price.",
            "Windows see further": "On the contrary: a block sees 7 x 7 places. What is far comes by shift and stage.",
            "Work that grows with the pixels, on maps that are fine enough": "A "
            "million patches of 4 pixels in windows of 49, and maps of four grains, as a network of lesson 14 takes "
            "them.",
        },
        answer=2,
    ),
    "local": Quiz(
        "From lesson 05: local attention there sees $w$ words to each side, and every word is the middle of its own "
        "window. What do Swin's windows do differently, and why?",
        options={
            "They are cut once, and shared: all queries of a window have the same keys": "So a window is one small, "
            "dense matrix product. Sliding windows see no borders, but each query has keys of its own: about as "
            "accurate in the paper, and slower (section 4.4). The shift is the remedy for the borders.",
            "They slide, too, in two directions": "Then no shift would be needed.",
            "They see the whole picture through a smaller width": "That is what a head does (lesson 05).",
        },
        answer=0,
    ),
}

BETS = {
    "cost": Bet(
        "Both nets have patches of 4 pixels, four blocks, about as many parameters. From 64 x 64 to 256 x 256 pixels "
        "the picture has 16 times as many pixels. By how many times does the *ViT's* work for one picture grow, "
        "counted in operations?",
        low=1,
        high=300,
        unit="times",
    ),
    "reach": Bet(
        "A map of 8 x 8 patches, windows of 2 x 2. Blocks 2 and 4 move their windows by one patch, blocks 1 and 3 do "
        "not. After one block 4 patches can reach a place. After **three**?",
        low=4,
        high=64,
        unit="patches",
    ),
    "shifted": Bet(
        "Digits, in windows of 8 x 8 pixels, one stage, no absolute positions: nothing but the shift leads from window "
        "to window. With it three seeds name 94, 94 and 79 % right. The same nets, windows never moved: how many, on "
        "average?",
        low=10,
        high=100,
        unit="%",
    ),
    "switches": Bet(
        "`swin` names 97 % of clean digits right. Now its **mask** is taken off, nothing else: after each roll the far "
        "ends of the picture attend to each other, which they never did in training. How many are right?",
        low=10,
        high=100,
        unit="%",
    ),
}
