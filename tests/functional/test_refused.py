"""What no function can do anything with is named by the function itself, without the types that only tests check."""

import math

import jaxtyping
import numpy as np
import pytest
import torch

from course_lib.functional import attention as a
from course_lib.functional import (
    attention_maps,
    cost,
    ctc,
    diffusion,
    images,
    language,
    losses,
    metrics,
    neighbour_maps,
    positions,
    preference,
    recurrent,
    sampling,
    scaling,
    segmentation,
    tiles,
    visualisation,
)
from course_lib.functional.linear_attention import linear_attention
from course_lib.functional.local_attention import local_attention
from course_lib.functional.numpy_recurrent import rnn_forward
from course_lib.layers.experts import route


def zeros(*shape):
    return torch.zeros(shape)


def whole(*numbers):
    return torch.tensor(numbers)


def ctc_of(*labels, frames=4, length=None, **options):
    lengths = whole(frames), whole(len(labels) if length is None else length)
    return ctc.ctc_loss(zeros(1, 4, 3).log_softmax(-1), whole(labels), *lengths, **options)


def masked(**settings):
    words = {"mask_id": 4, "word_ids": (5, 50)} | settings
    return language.mask_tokens(zeros(1, 4).long(), zeros(3, 1, 4), maskable=zeros(1, 4).bool(), **words)


Q = zeros(1, 2, 5, 4)
IMAGE, ONE_HOT, LOGITS, MASK = zeros(1, 1, 3, 3), zeros(1, 3, 1, 2), zeros(2, 3, 5), zeros(1, 2, 2).bool()
X = torch.logspace(3, 6, 8).double()
N, MORE = torch.cartesian_prod(torch.logspace(5, 9, 5).double(), torch.logspace(7, 10, 5).double()).unbind(1)
SIZES = torch.logspace(5, 9, 12).double()
ATTENTIONS, LOSSES = (a.attention, a.readable_attention), (losses.cross_entropy, losses.readable_cross_entropy)
POWER_LAWS = {  # y that no power law of x gives
    "3 different": ([1, 2, 2, 1], [3, 2, 2, 3]),
    "positive": ([1, 2, 3, 4], [3, 2, 0, 1]),
    "-3": ([1, 2, -3, 4], [3, 2, 1, 1]),
    "finite": ([1, 2, 3, 4], [3, 2, math.nan, 1]),
    "does not fall": ([1, 2, 3, 4], [1, 2, 3, 4]),
}

REFUSED = [
    # attention: masks, shapes
    *((lambda f=f: f(Q, Q, Q, mask=zeros(5, 5)), "must be boolean.*float32.*bias") for f in ATTENTIONS),
    *((lambda f=f: f(Q, Q, Q, mask=zeros(5, 5), causal=True), "must be boolean.*float32") for f in ATTENTIONS),
    *((lambda f=f: f(Q, Q, Q, mask=zeros(5, 5).long()), "must be boolean.*int64") for f in ATTENTIONS),
    *((lambda f=f: f(Q, Q, Q, mask=zeros(5, 3).bool()), r"mask of shape \(5, 3\).*\(1, 2, 5, 5\)") for f in ATTENTIONS),
    *((lambda f=f: f(Q, Q, Q, bias=zeros(5, 3)), r"bias of shape \(5, 3\).*\(1, 2, 5, 5\)") for f in ATTENTIONS),
    (lambda: a.attention(Q[0, 0], Q[0, 0], Q[0, 0], mask=zeros(2, 5, 5).bool()), r"\(2, 5, 5\)"),
    *((lambda f=f: f(Q, Q[..., :3], Q), r"q \(1, 2, 5, 4\), k \(1, 2, 5, 3\), v \(1, 2, 5, 4\)") for f in ATTENTIONS),
    *((lambda f=f: f(Q, Q, Q[..., :4, :]), r"v \(1, 2, 4, 4\)") for f in ATTENTIONS),
    *((lambda f=f: f(Q, Q[0], Q[0]), r"q \(1, 2, 5, 4\), k \(2, 5, 4\), v \(2, 5, 4\)") for f in ATTENTIONS),
    (lambda: a.masked_softmax(zeros(2, 3), zeros(2, 3)), "torch.float32"),
    (lambda: a.valid_positions(whole(2, 4), 3), r"size=3.*\[2, 4\]"),
    (lambda: a.padding_mask(whole(-1), 3), r"size=3.*\[-1\]"),
    (lambda: a.local_mask(4, window=-2), "-2"),
    (lambda: a.combine_masks(a.causal_mask(3), a.causal_mask(4)), r"\(3, 3\), \(4, 4\)"),
    (lambda: local_attention(Q, Q, Q, window=-1), "0 or more, got -1"),
    # what a sum over keys cannot do
    (lambda: linear_attention(Q, Q, Q, mask=zeros(5, 5).bool()), "hidden from all queries"),
    (lambda: linear_attention(Q, Q, Q, mask=zeros(5)), "boolean"),
    (lambda: linear_attention(Q, Q, Q, bias=zeros(5, 5)), "no scores"),
    (lambda: linear_attention(Q, Q, Q, scale=1.0), "scale=1.0"),
    (lambda: linear_attention(Q, Q, Q, dropout=0.1), "dropout=0.1"),
    (lambda: linear_attention(Q, Q, Q, block=0), "block .*got 0"),
    # maps of attention
    (lambda: attention_maps.attention_distance(zeros(8, 8), 2, 3), "2 x 3 patches and at most one .* got 8 tokens"),
    (lambda: attention_maps.attention_distance(zeros(1, 1), 0, 3), "positive, got 0 x 3 patches of 1.0 pixels"),
    (lambda: attention_maps.attention_rollout(torch.ones(1, 1, 1, 1, 1), residual=1.5), "from 0 to 1; got 1.5"),
    (lambda: attention_maps.attention_rollout(zeros(3, 4, 5, 5)), r"\(B, L, H, T, T\), got \(3, 4, 5, 5\)"),
    (lambda: attention_maps.attention_rollout(zeros(1, 2, 3, 4, 5, 5)), r"got \(1, 2, 3, 4, 5, 5\)"),
    (lambda: attention_maps.attention_rollout(zeros(2, 3, 4, 5, 6)), r"got \(2, 3, 4, 5, 6\)"),
    # costs
    (lambda: cost.layer_cost("pooling", 4, 4), "pooling"),
    (lambda: cost.layer_cost("recurrent", 0, 4), "n=0"),
    (lambda: cost.layer_cost("convolutional", 4, 4, k=1), "k=1"),
    (lambda: cost.fit_slope([1, 1], [2, 3]), r"x=\[1, 1\]"),
    (lambda: cost.fit_slope([1, 2], [0, 3]), r"y=\[0, 3\]"),
    (lambda: cost.fit_slope([1, 2], [1]), "as many y"),
    (lambda: cost.median_seconds(print, repeats=0), "got 0"),
    # labels without a place in time
    (lambda: ctc_of(3), r"not be the blank, 0; got \[3\]"),
    (lambda: ctc_of(1, 0), r"got \[0\]"),
    (lambda: ctc_of(1, blank=3), "one of the 3 symbols, got 3"),
    (lambda: ctc_of(1, 1, frames=5), r"1..4 frames and 0..2 labels, got \[5\] and \[2\]"),
    (lambda: ctc_of(1, 1, frames=0), r"got \[0\] and \[2\]"),
    (lambda: ctc_of(1, 1, length=3), r"got \[4\] and \[3\]"),
    (lambda: ctc.prefix_beam_search(zeros(4, 3), width=0), "width=0"),
    (lambda: ctc.error_rate([[1]], []), "1 hypotheses for 0 references"),
    (lambda: ctc.error_rate([[1]], [[]]), "with 0 labels"),
    # noise
    (lambda: diffusion.linear_schedule(10), "between 0 and 1"),
    (lambda: diffusion.linear_schedule(0), "between 0 and 1"),
    (lambda: diffusion.linear_schedule(1000, last=-0.01), "between 0 and 1"),
    (lambda: diffusion.cosine_schedule(0), "got 0"),
    # a number of experts that there are not
    (lambda: route(zeros(7, 4), 0), "from 1 to the number of experts, 4, got 0"),
    (lambda: route(zeros(7, 4), 5), "from 1 to the number of experts, 4, got 5"),
    # images
    (lambda: images.max_pool(IMAGE, 4), "4 x 4 pixels at a stride of 4 do not fit into 3 x 3"),
    (lambda: images.max_pool(IMAGE, 2, stride=0), "stride of 0"),
    (lambda: images.max_unpool(zeros(1, 1, 1, 1), whole([[[9]]]), 3, 3), "9 to 9.* 0 to 8"),
    (lambda: images.max_unpool(zeros(1, 1, 1, 1), whole([[[-1]]]), 3, 3), "-1 to -1"),
    (lambda: images.bilinear_kernel(0), "stride=0"),
    (lambda: images.fully_connected_as_convolution(zeros(7, 60), 4, 4), "60 inputs are no .* channels of 4 x 4"),
    (lambda: images.fully_connected_as_convolution(zeros(7, 60), 0, 4), "0 x 4"),
    (lambda: images.Normalisation(mean=(0.5,) * 3, std=(0.2,) * 3)(IMAGE), "3 channels.*1 channel"),
    (lambda: images.Normalisation(mean=(0.5, 0.5), std=(0.2,)), "as many"),
    (lambda: images.Normalisation(mean=(0.5,), std=(0.0,)), "as many"),
    (lambda: images.Normalisation(mean=(), std=()), "as many"),
    (lambda: images.COURSE_PIXELS(IMAGE.byte()), "got bytes.*divide by 255"),
    (lambda: images.COURSE_PIXELS(IMAGE + 255), "got 255 to 255: divide by 255"),
    (lambda: images.COURSE_PIXELS(IMAGE - 2), "got -2 to -2: give them as they are"),
    (lambda: images.COURSE_PIXELS(IMAGE + 1.5), "got 1.5 to 1.5: give them as they are"),
    (lambda: images.COURSE_PIXELS(IMAGE + math.nan), "got nan to nan"),
    # language
    (lambda: masked(ratio=0.0), "ratio=0.0"),
    (lambda: masked(ratio=1.5), "ratio=1.5"),
    (lambda: masked(hidden=0.95), "hidden=0.95"),
    (lambda: masked(swapped=-0.1), "swapped=-0.1"),
    (lambda: masked(word_ids=(5, 5)), r"got \(5, 5\)"),
    (lambda: language.next_sentence_pairs(whole(1, 1, 1), zeros(2, 3)), "two documents or more, each in one piece"),
    (lambda: language.next_sentence_pairs(whole(1, 2, 1), zeros(2, 3)), "3 pieces of 2 documents"),
    (lambda: language.corrupt_spans(whole(5, 6), whole(True, False), first_sentinel=7), "2 sentinels .* from 7 to 6"),
    (lambda: language.corrupt_spans(whole(5, 6), whole(True, False), first_sentinel=0), "count down from 0 to -1"),
    (lambda: language.random_spans(1), "length=1, rate=0.15, mean_span=3"),
    (lambda: language.random_spans(5, rate=1.0), "rate=1.0"),
    # losses
    *((lambda f=f: f(LOGITS, zeros(2, 3).long(), smoothing=1.5), "from 0 to 1, got 1.5") for f in LOSSES),
    *((lambda f=f: f(LOGITS, zeros(2, 3).long(), scored=zeros(2, 3).bool()), "no target is scored") for f in LOSSES),
    *((lambda f=f: f(LOGITS, zeros(3, 2).long()), r"logits \(2, 3, 5\) and targets \(3, 2\)") for f in LOSSES),
    (lambda: losses.nt_xent(zeros(4, 3), zeros(5, 3)), r"one shape \(B, D\), got \(4, 3\) and \(5, 3\)"),
    (lambda: losses.nt_xent(zeros(4, 3), zeros(4, 2)), r"got \(4, 3\) and \(4, 2\)"),
    (lambda: losses.nt_xent(LOGITS, LOGITS), r"got \(2, 3, 5\) and \(2, 3, 5\)"),
    (lambda: losses.nt_xent(zeros(4), zeros(4)), r"got \(4,\) and \(4,\)"),
    (lambda: losses.nt_xent(zeros(1, 3), zeros(1, 3)), "two or more, got 1"),
    (lambda: losses.nt_xent(zeros(2, 3), zeros(2, 3), temperature=0.0), "temperature must be positive, got 0"),
    # scores of translations and labels
    (lambda: metrics.corpus_bleu(["a b"], ["a b"]), "plain string"),
    (lambda: metrics.corpus_bleu([["a"]], []), "got 0 and 1"),
    (lambda: metrics.corpus_bleu([], []), "got 0 and 0"),
    (lambda: metrics.corpus_bleu([["a"]], [["a"]], smoothing="floor"), "floor"),
    (lambda: metrics.bleu_by_length([["a"]], [["a"]], [1, 2], [0, 5]), "got 2 for 1"),
    (lambda: metrics.bleu_by_length([["a"]], [["a"]], [1], [5, 5]), r"\[5, 5\]"),
    (lambda: metrics.alignment_error_rate([{(0, 0)}], []), "1 predicted, 0 sure"),
    (lambda: metrics.alignment_error_rate([set()], [set()]), "undefined"),
    (lambda: metrics.perplexity(1.0, 0), "num_tokens=0"),
    (lambda: metrics.bits_per_byte(-1.0, 3), "nats=-1.0"),
    (lambda: metrics.accuracy([], []), r"\(0,\)"),
    (lambda: metrics.accuracy([1], [1, 2]), r"\(1,\) and \(2,\)"),
    (lambda: metrics.accuracy([0.5], [1]), "float64"),
    (lambda: metrics.accuracy(["a"], [1]), "of a kind"),
    (lambda: metrics.matthews_correlation([], []), r"\(0,\)"),
    (lambda: metrics.f1_score([1], [1], average="weighted"), "'weighted'"),
    (lambda: metrics.f1_score([0, 1, 2], [0, 1, 2]), r"\[0, 1, 2\]"),
    (lambda: metrics.f1_score([0, 2], [0, 2]), r"\[0, 2\]"),
    (lambda: metrics.pearson_correlation([1], [2]), "at least two"),
    (lambda: metrics.pearson_correlation([1, 2], [1, 2, 3]), r"\(2,\) and \(3,\)"),
    (lambda: metrics.pearson_correlation([1, 1, 1], [1, 2, 3]), "constant"),
    (lambda: metrics.spearman_correlation([1, 2, 3], [4, 4, 4]), "constant"),
    (lambda: metrics.pearson_correlation([1, math.nan], [1, 2]), "finite"),
    # neighbours, positions
    (lambda: neighbour_maps.neighbour_shares(zeros(20, 3), 1.0), "between 1 and N - 1 = 19"),
    (lambda: neighbour_maps.neighbour_shares(zeros(20, 3), 19.0), "between 1 and N - 1 = 19"),
    (lambda: neighbour_maps.neighbour_shares(zeros(20, 3), math.inf), "between 1 and N - 1 = 19"),
    *((lambda f=f: f(0, 4), "length=0, dim=4") for f in (positions.sinusoidal_positions, positions.rotary_turns)),
    *((lambda f=f: f(5, 3), "length=5, dim=3") for f in (positions.sinusoidal_positions, positions.rotary_turns)),
    *((lambda f=f: f(5, 0), "length=5, dim=0") for f in (positions.sinusoidal_positions, positions.rotary_turns)),
    (lambda: positions.sinusoidal_positions_2d(0, 2, 4), "0 x 2, dim=4"),
    (lambda: positions.sinusoidal_positions_2d(2, 0, 4), "2 x 0, dim=4"),
    (lambda: positions.sinusoidal_positions_2d(2, 3, 6), "2 x 3, dim=6"),
    (lambda: positions.sinusoidal_positions_2d(2, 3, 0), "2 x 3, dim=0"),
    (lambda: positions.relative_buckets(whole(1), num_buckets=3), "num_buckets=3, max_distance="),
    (lambda: positions.relative_buckets(whole(1), num_buckets=1, bidirectional=False), "num_buckets=1, max_distance="),
    (lambda: positions.relative_buckets(whole(1), num_buckets=32, max_distance=8), "num_buckets=32, max_distance=8"),
    (lambda: positions.interpolate_positions(zeros(3, 4, 6), 0, 4), "at least one patch in each direction, got 0 x 4"),
    # preferences: shapes that would broadcast to another number
    (lambda: preference.ranking_loss(zeros(3, 1)), "two answers or more"),
    (lambda: preference.advantages(zeros(1, 4), zeros(1, 4)), "4 rewards need one value more, got 4"),
    (lambda: preference.dpo_loss(*zeros(4, 3, 2)), r"one number for each answer, \(B\), got \(3, 2\)"),
    (lambda: preference.dpo_loss(zeros(3), zeros(3), zeros(3), zeros(1)), r"\(3\), \(3\), \(3\) and \(1\)"),
    (lambda: preference.implicit_rewards(zeros(3), zeros(3, 3), beta=0.1), r"\(3\) and \(3, 3\)"),
    (lambda: preference.clipped_objective(zeros(3, 3), zeros(3, 3), zeros(3)), r"\(3, 3\), \(3, 3\) and \(3\)"),
    (lambda: preference.clipped_value_loss(zeros(3, 3), zeros(3), zeros(3, 3)), r"\(3, 3\), \(3\) and \(3, 3\)"),
    (lambda: preference.clipped_objective(*zeros(3, 2, 2), valid=zeros(2).bool()), r"\(2, 2\), \(2, 2\) and \(2\)"),
    (lambda: preference.penalised_rewards(zeros(2), *zeros(2, 3, 2), beta=0.1), r"scores .*\(2\) .*\(3, 2\)"),
    (lambda: preference.penalised_rewards(zeros(3), zeros(3, 3), zeros(3), beta=0.1), r"\(3, 3\) and \(3\)"),
    (
        lambda: preference.penalised_rewards(zeros(2), *zeros(2, 2, 3), beta=0.1, valid=zeros(2, 3).bool()),
        r"rows \[0, 1\] have no token",
    ),
    # recurrent networks
    (lambda: recurrent.rnn_step(zeros(1, 1), zeros(1, 1), Q, Q, activation="sigmoid"), "tanh, relu, got 'sigmoid'"),
    (lambda: recurrent.recurrent_matrix(0, 1.0), "dim=0"),
    (lambda: recurrent.recurrent_matrix(3, -1.0), "radius=-1.0"),
    (lambda: recurrent.recurrent_matrix(3, 1.0, kind="normal"), "kind='normal'"),
    (lambda: rnn_forward(np.zeros((2, 0, 1)), *np.zeros((4, 1, 1))), r"got shape \(2, 0, 1\)"),
    # draws
    *((lambda t=t: sampling.temperature(Q, t), f"finite, got {t}") for t in (0.0, -1.0, math.inf, math.nan)),
    *((lambda k=k: sampling.top_k(Q, k), f"top_k must be 1 or more, got {k}") for k in (0, -3)),
    *((lambda p=p: sampling.top_p(Q, p), f"at most 1, got {p}") for p in (0.0, -0.1, 1.1, math.nan)),
    # laws of scale
    *(
        (lambda x=x, y=y: scaling.fit_power_law(whole(*x).double(), whole(*y).double()), words)
        for words, (x, y) in POWER_LAWS.items()
    ),
    (lambda: scaling.fit_scaling_law(N[::6], MORE[::6], N[::6]), "six runs"),
    (lambda: scaling.fit_scaling_law(N[:10], MORE[:10], N[:10]), "3 different"),
    (lambda: scaling.fit_isoflop(X, 5 - 0.1 * X.log()), "no valley"),
    (lambda: scaling.fit_isoflop(X[:2], X[:2]), "3 different"),
    (lambda: scaling.bootstrap_power_laws(X[:3], 1 / X[:3]), "4 different"),
    (lambda: scaling.interval([1.0], 1.0), "level"),
    (lambda: scaling.CHINCHILLA.allocation(0), "flops"),
    *(
        (lambda d=d: scaling.fit_scaling_law(SIZES, d, 1 / d), "grow together.*several amounts of data for a size")
        for d in (20 * SIZES, 20 * SIZES * (1 + 0.02 * (-1.0) ** torch.arange(12)))
    ),
    # areas, outlines and things
    (lambda: segmentation.confusion_matrix(whole(0, 4), whole(0, 1), 4), "predicted labels run from 0 to 4"),
    (lambda: segmentation.confusion_matrix(whole(0, 1), whole(-1, 1), 4), "true labels run from -1 to 1"),
    (lambda: segmentation.dice_loss(ONE_HOT, whole([[0, 255]])), "labels run from 0 to 255, 3 classes"),
    (lambda: segmentation.dice_loss(ONE_HOT, whole([[-1, 0]])), "labels run from -1 to 0, 3 classes"),
    (lambda: segmentation.mean_iou(zeros(0).long(), zeros(0).long(), 4), "no pixel"),
    (lambda: segmentation.boundary_f_score(MASK[:0], MASK[:0]), "0 images"),
    (lambda: segmentation.boundary_f_score(MASK, MASK, tolerance=-1), "and -1"),
    (lambda: segmentation.connected_components(MASK.long(), connectivity=6), "got 6"),
    (lambda: segmentation.mask_boxes(MASK), "without a pixel"),
    (lambda: segmentation.average_precision([], [None]), "got 0 predicted and 1 true"),
    (lambda: tiles.in_tiles(lambda part: part, IMAGE, tile=32, overlap=-1), "0 <= overlap < tile"),
    (lambda: tiles.in_tiles(lambda part: part, IMAGE, tile=32, overlap=32), "0 <= overlap < tile"),
    # what a unit responds to
    (lambda: visualisation.receptive_fields([(0, 1)]), r"\(0, 1\)"),
    (
        lambda: visualisation.most_exciting(zeros(4, 3, 3), zeros(4, 1, 6, 6), visualisation.Field(3, 2), count=5),
        "count",
    ),
    (lambda: visualisation.maximise(torch.sum, (1, 1, 2, 2), steps=0), "steps"),
    (lambda: visualisation.occlusion_map(torch.sum, IMAGE, size=7), "7 pixels"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_what_cannot_be_is_named(call, words, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=words):
        call()
