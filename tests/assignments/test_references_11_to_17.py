"""The references of assignments 11 to 17 return what the library, torch, a loop or a search does."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.functional.attention_maps import attention_rollout
from course_lib.functional.ctc import collapse, ctc_lattice
from course_lib.functional.diffusion import add_noise, clean_estimate, denoise_step, linear_schedule
from course_lib.functional.language import random_spans
from course_lib.functional.positions import sinusoidal_positions_2d
from course_lib.functional.segmentation import Instances, average_precision
from course_lib.layers.patches import patchify
from course_lib.layers.segmentation import bilinear_upsampling
from course_lib.layers.windows import PatchMerging
from course_lib.lessons.lesson_13.assignment import probe_accuracy
from course_lib.lessons.lesson_17 import assignment as of_17
from course_lib.models.mae import MAE, MAEConfig
from course_lib.models.swin import Swin, SwinConfig
from course_lib.models.vit import ViTConfig
from course_lib.tasks import Draw
from course_lib.tasks.findings import WRONG_SHAPE
from course_lib.tasks.wrong import made_by
from tests.assignments.delivered import Ways, doubled, inputs, mistaken, reference, table, told

WAYS = Ways()


# 11: patches -------------------------------------------------------------------------------------------------


def test_overlapping_patches_times_a_matrix_are_a_convolution():
    for case, seed in itertools.product(range(3), (1, 2)):
        image, p, stride, padding = inputs("11", "overlapping_patches", case, seed)
        kernel = torch.randn(6, image.shape[1], p, p)
        wanted = F.conv2d(image, kernel, stride=stride, padding=padding).flatten(2).mT
        found = reference("11", "overlapping_patches")(image, p, stride, padding)
        torch.testing.assert_close(found @ kernel.permute(2, 3, 1, 0).flatten(0, 2), wanted, atol=1e-3, rtol=1e-3)


@WAYS.to_compute("11", "add_positions", seeds=(1, 2))
def by_the_positions_of_the_library(patches, height, width):
    return patches + sinusoidal_positions_2d(height, width, patches.shape[-1])


def normed(row, height, width):
    return (row / row.sum(dim=1, keepdim=True)).view(-1, height, width)


MAPS = [inputs("11", "rollout_map", case, seed) for case in range(3) for seed in (1, 2)]


@WAYS.to_compute("11", "rollout_map", *((weights, 0 * gradients + 1, *size) for weights, gradients, *size in MAPS))
def by_the_rollout_of_the_library_with_gradients_of_one(weights, gradients, height, width):
    return normed(attention_rollout(weights)[:, 0, 1:], height, width)


MAPS = [inputs("11", "contribution_map", case, seed) for case in range(3) for seed in (1, 2)]


@WAYS.to_compute("11", "contribution_map", *((weights, 0 * v + 1, 0 * x, *size) for weights, v, x, *size in MAPS))
def by_the_weights_with_values_of_one_and_no_residual(weights, values, x, height, width):
    rolled = torch.eye(weights.shape[-1])
    for block in weights.mean(dim=2).unbind(dim=1):
        rolled = block @ rolled
    return normed(rolled[:, 0, 1:], height, width)


def test_without_the_copies_shifted_patches_are_the_library_s():
    for case, seed in itertools.product(range(3), (1, 2)):
        image, p, shift = inputs("11", "shifted_patches", case, seed)
        found = reference("11", "shifted_patches")(image, p, shift).unflatten(-1, (p * p, 5, image.shape[1]))
        assert torch.equal(found[:, :, :, 0].flatten(2), patchify(image, p))
        moved = torch.zeros_like(image)
        moved[..., :-shift, :-shift] = image[..., shift:, shift:]
        assert torch.equal(found[:, :, :, 1].flatten(2), patchify(moved, p))


def test_scores_of_rotated_vectors_depend_on_the_distance_alone():
    query, key = torch.randn(2, 1, 1, 1, 8, dtype=torch.double)
    rotate = reference("11", "rotate_by_position")
    scores = (rotate(query.expand(1, 1, 12, 8), 3, 4) @ rotate(key.expand(1, 1, 12, 8), 3, 4).mT)[0, 0]
    scores = scores.view(3, 4, 3, 4)  # row and column of the query, then of the key
    torch.testing.assert_close(scores[0, 0, 1, 2], scores[1, 1, 2, 3])
    assert (scores[0, 0, 1, 2] - scores[0, 0, 2, 1]).abs() > 1e-3


@WAYS.to_compute("11", "merge_tokens", seeds=(1, 2))
def by_a_loop_over_tokens(tokens, keys, sizes, count):
    merged = []
    for image in range(len(tokens)):
        unit = F.normalize(keys[image].mean(dim=0), dim=-1)
        best = {
            even: max((float(unit[even] @ unit[odd]), odd) for odd in range(1, len(unit), 2))
            for even in range(2, len(unit), 2)
        }
        joins = sorted(best, key=lambda even: best[even])[-count:]
        merged.append([])
        for token in (token for token in range(len(unit)) if token not in joins):
            group = [token, *(even for even in joins if best[even][1] == token)]
            weights = sizes[image, group]
            merged[-1].append(weights @ tokens[image, group] / weights.sum())
    return torch.stack([torch.stack(image) for image in merged])


# 12: windows -------------------------------------------------------------------------------------------------

FIELDS = [(torch.tensor(place), 9, 12, 3, 1, n) for n, place in ((1, (2, 3)), (2, (1, 7)), (3, (8, 0)), (4, (5, 6)))]


@WAYS.to_compute("12", "receptive_field", *FIELDS)
def by_the_gradient_of_a_swin(position, height, width, size, shift, blocks):
    config = SwinConfig(
        patch_size=1, in_channels=1, num_classes=None, dim=8, depths=(blocks,), num_heads=(2,), window_size=size
    )
    torch.manual_seed(0)
    stage = Swin(config).double().stages[0].eval()
    for parameter in stage.parameters():
        nn.init.normal_(parameter, std=0.5)
    x = torch.randn(1, height, width, 8, dtype=torch.double, requires_grad=True)
    stage(x)[0, *position.tolist()].sum().backward()
    return x.grad[0].abs().amax(-1) > 0


def neighbours(i, length, kernel, dilation):
    """The rows that row i attends to: those k of its group that lie nearest to it, found by trying all windows."""
    group = [row for row in range(length) if row % dilation == i % dilation]
    windows = [group[start : start + kernel] for start in range(len(group) - kernel + 1)]
    return min(windows, key=lambda window: abs(window[kernel // 2] - i))


@WAYS.to_compute("12", "neighborhood_field", seeds=(4,))
def by_a_search(position, height, width, kernel, dilations):
    seen = []
    for start, length in zip(position.tolist(), (height, width), strict=True):
        field = {start}
        for dilation in dilations[::-1]:
            field = {row for i in field for row in neighbours(i, length, kernel, dilation)}
        seen.append(torch.zeros(length, dtype=torch.bool).index_fill(0, torch.tensor(list(field)), True))
    return seen[0][:, None] & seen[1]


@WAYS.to_compute("12", "decomposed_bias", seeds=(4,))
def by_a_loop_over_queries_and_keys(q, rows, columns, height, width, stride):
    keys = [(row, column) for row in range(0, height, stride) for column in range(0, width, stride)]
    bias = torch.zeros(*q.shape[:2], height * width, len(keys))
    for i, (j, (row, column)) in itertools.product(range(height * width), enumerate(keys)):
        vector = rows[i // width - row + height - stride] + columns[i % width - column + width - stride]
        bias[:, :, i, j] = q[:, :, i] @ vector
    return bias


def test_reassembling_with_one_weight_is_upsampling_of_the_nearest():
    x, logits = torch.randn(2, 3, 4, 5), torch.zeros(2, 3, 4, 4, 9)
    logits[..., 4] = 100.0  # the middle of each neighbourhood
    found = reference("12", "reassemble")(x, logits.flatten(3), 3, 2)
    torch.testing.assert_close(found, x.repeat_interleave(2, dim=1).repeat_interleave(2, dim=2))
    mean = reference("12", "reassemble")(x, 0 * logits[..., 0, :], 3, 1)
    wanted = F.avg_pool2d(x.permute(0, 3, 1, 2), 3, stride=1, padding=1).permute(0, 2, 3, 1)
    torch.testing.assert_close(mean, wanted)


def test_patch_expanding_undoes_patch_merging():
    x, merging = torch.randn(2, 5, 3, 6), PatchMerging(6)
    merging.norm, merging.proj = nn.Identity(), nn.Identity()  # leaves the four of 6 side by side: 24
    assert torch.equal(reference("12", "patch_expanding")(merging(x), torch.eye(24), 5, 3), x)


# 13: masks ---------------------------------------------------------------------------------------------------


def test_a_reconstruction_is_that_of_the_library():
    encoder = ViTConfig(
        image_size=28, patch_size=4, in_channels=1, num_classes=None, pool="mean", dim=16, depth=1, num_heads=2
    )
    model = MAE(MAEConfig(encoder=encoder, decoder_dim=8, decoder_depth=1, decoder_num_heads=2, decoder_mlp_dim=16))
    image, noise = Draw(0)(2, 1, 28, 28), Draw(1)(2, 49)
    found = reference("13", "reconstruct")(image, *model(image, noise), 4)
    torch.testing.assert_close(found, model.reconstruct(image, noise))


def test_the_probe_has_the_least_error_with_its_penalty():
    draw = Draw(0)
    known, labels = draw(12, 3).double(), draw.integers(0, 2, 12)
    scores = reference("13", "probe_scores")(known, labels, known, 2, 1.5)
    z = (known - known.mean(0)) / (known.var(0, correction=0) + 1e-6).sqrt()
    # the penalty as three more examples, whose targets are 0; the constant belongs to the twelve real ones alone
    rows = torch.cat([torch.cat([z, torch.ones(12, 1)], 1), torch.eye(3, 4) * 1.5**0.5])
    targets = torch.cat([F.one_hot(labels, 2).double(), torch.zeros(3, 2)])
    torch.testing.assert_close(scores, rows[:12] @ torch.linalg.lstsq(rows, targets).solution)


def test_the_probe_of_the_grader_is_ridge_regression():
    draw = Draw(0)
    known, labels, new = draw(60, 9) + 2, draw.integers(0, 6, 60), 2 * draw(40, 9)
    answers = reference("13", "probe_scores")(known, labels, new, 6, 10.0).argmax(1)
    assert probe_accuracy(known, labels, new, answers) == 1


def test_a_histogram_knows_the_orientation_of_a_wave_and_neither_its_contrast_nor_its_brightness():
    row, column = torch.meshgrid(torch.arange(24) / 24, torch.arange(24) / 24, indexing="ij")
    hog = reference("13", "hog_target")
    for angle, k in ((0.1, 0), (0.9, 1), (1.7, 2), (2.5, 3), (3.3, 0)):
        wave = (20 * (column * math.cos(angle) + row * math.sin(angle))).cos()[None]
        inside = hog(wave, 4, 4).view(6, 6, 4)[1:-1, 1:-1]  # at the edge, gradients are one-sided
        assert (inside.argmax(dim=-1) == k).all() and inside[..., k].min() > 0.95
        torch.testing.assert_close(hog(3 * wave - 1, 4, 4), hog(wave, 4, 4), atol=1e-3, rtol=0)


@WAYS.to_compute("13", "teacher_loss", seeds=(4,), rtol=1e-4, atol=0)
def by_a_loop_over_several_masks(blocks, predicted, masked, K):
    errors = []
    for b in range(len(predicted)):
        # torch's instance norm wants the features before the patches
        mean = sum(F.instance_norm(block[b].T[None])[0].T for block in blocks[len(blocks) - K :]) / K
        for m, n in masked[b].nonzero().tolist():
            variance, middle = torch.var_mean(mean[n], correction=0)
            errors.append((predicted[b, m, n] - (mean[n] - middle) / (variance + 1e-5).sqrt()).square())
    return torch.cat(errors).mean()


def test_each_frequency_is_a_wave_of_its_own():
    H, W, loss = 6, 7, reference("13", "frequency_loss")
    row, column = torch.arange(H)[:, None] / H, torch.arange(W) / W
    for u, v in ((0, 0), (0, 3), (2, -1), (-2, 2), (1, 3), (3, -3)):
        wave = (2 * math.pi * (u * row + v * column)).cos()[None, None]
        zero, distance = torch.zeros_like(wave), math.hypot(u, v)
        # only the frequencies (u, v) and (-u, -v) of a wave are not 0, and they are on the same side of each border
        assert loss(wave, zero, distance + 0.01, True).item() == pytest.approx(0, abs=1e-6)
        assert loss(wave, zero, distance + 0.01, False).item() > 0.1
        assert loss(wave, zero, distance - 0.01, True).item() > 0.1
        if distance:
            assert loss(wave, zero, distance - 0.01, False).item() == pytest.approx(0, abs=1e-6)


@WAYS.to_compute("13", "frequency_loss", (Draw(0)(3, 2, 5, 4), Draw(1)(3, 2, 5, 4), 9.0, False))
def by_the_mean_over_the_whole_transform_where_nothing_is_visible(image, predicted, border, low):
    return (torch.fft.fft2(image - predicted).abs() / 20**0.5).mean(dim=(1, 2, 3))


def test_the_discriminant_ranks_classes_by_their_probability():
    for case in table("13", "discriminant_scores").cases:
        features, labels, new, num_classes, shrinkage = case.inputs(Draw(4))
        classes = [features[labels == c] for c in range(num_classes)]
        covariance = sum((of - of.mean(0)).T @ (of - of.mean(0)) for of in classes) / len(features)
        mean_variance = covariance.diagonal().mean()
        covariance = covariance.lerp(mean_variance * torch.eye(len(covariance)), shrinkage)
        normal = [torch.distributions.MultivariateNormal(of.mean(0), covariance) for of in classes]
        priors = [math.log(len(of) / len(features)) for of in classes]
        joint = torch.stack([p.log_prob(new) + prior for p, prior in zip(normal, priors, strict=True)], 1)
        found = reference("13", "discriminant_scores")(features, labels, new, num_classes, shrinkage)
        torch.testing.assert_close(found.softmax(1), joint.softmax(1), atol=1e-4, rtol=1e-3)


# 14: segmentation --------------------------------------------------------------------------------------------


@WAYS.to_compute("14", "upsample", *((Draw(0)(2, 3, 4, 5), factor) for factor in (1, 2, 3, 5, 8)))
def by_the_layer_of_the_library(x, factor):
    return bilinear_upsampling(3, factor)(x)


@WAYS.to_compute("14", "roi_align", seeds=(3,), atol=1e-5, rtol=1e-5)
def by_a_sampling_grid(x, boxes, stride, size):
    part, pooled = (torch.arange(2 * size) + 0.5) / (2 * size), []
    sides = torch.tensor([x.shape[2], x.shape[1]]) * stride
    for box in boxes:
        points = box[:2] + part[:, None] * (box[2:] - box[:2])  # (2 size, 2): from the left, from the top
        right, down = (2 * points / sides - 1).T
        grid = torch.stack(torch.meshgrid(right, down, indexing="xy"), dim=-1)
        samples = F.grid_sample(x[None], grid[None], padding_mode="border", align_corners=False)
        pooled.append(F.avg_pool2d(samples[0], 2))
    return torch.stack(pooled)


SCHEDULE = linear_schedule(200)


@pytest.mark.parametrize(("t", "before"), [(199, 0), (120, 40), (7, 6)])
def test_with_the_true_noise_a_step_leads_to_the_noisy_image_of_the_earlier_step(t, before):
    images, noise = Draw(0)(3, 2, 5, 4).double(), Draw(1)(3, 2, 5, 4).double()
    noisy, wanted = (add_noise(images, noise, torch.full((3,), step), SCHEDULE) for step in (t, before))
    found = reference("14", "ddim_step")(noisy, noise, t, before, SCHEDULE.alpha_bars.double())
    torch.testing.assert_close(found, wanted, atol=1e-6, rtol=1e-6)


@WAYS.to_compute("14", "ddim_step", (Draw(0)(2, 1, 4, 4), Draw(1)(2, 1, 4, 4), 60, -1, SCHEDULE.alpha_bars))
def by_the_estimate_of_clean_images_of_the_library(noisy, predicted, t, before, alpha_bars):
    return clean_estimate(noisy, predicted, torch.full((2,), t), SCHEDULE)


def test_the_mean_of_ddpm_which_is_named_as_a_mistake_is_that_of_the_library():
    noisy, predicted = Draw(0)(2, 1, 4, 4), Draw(1)(2, 1, 4, 4)
    found = mistaken(table("14", "ddim_step"), "mean of DDPM")(noisy, predicted, 60, 59, SCHEDULE.alpha_bars)
    mean = denoise_step(noisy, predicted, torch.zeros_like(noisy), 60, SCHEDULE)
    torch.testing.assert_close(found, mean, atol=1e-4, rtol=1e-4)


@WAYS.to_compute("14", "lovasz_softmax", seeds=(3,))
def by_the_sets_of_errors_above_a_random_threshold(probs, labels):
    kept, losses = labels != 255, []
    for c in labels[kept].unique():
        target, p = (labels == c)[kept], probs[:, c][kept]
        errors = torch.where(target, 1 - p, p)
        levels = torch.cat([torch.zeros(1), errors.sort().values])
        iou = [(target & (errors < top)).sum() / (target | (errors >= top)).sum() for top in levels[1:]]
        losses.append((levels.diff() * (1 - torch.stack(iou))).sum())
    return sum(losses) / len(losses)


@WAYS.to_compute("14", "average_precision", seeds=range(4), rtol=1e-6, atol=1e-12)
def by_the_library(masks, scores, true, threshold):
    found, there = (
        Instances(masks=things, classes=torch.ones(len(things), dtype=torch.int64), scores=sure)
        for things, sure in ((masks, scores), (true, torch.ones(len(true))))
    )
    wanted = average_precision([found], [there], threshold=threshold)[1]
    assert 0 <= wanted <= 1
    return wanted


def quality(predicted, true, void):
    """The quality of one class by its segments, which are sets of pixels."""
    pairs = [(len((p - void) & t) / len((p - void) | t), i, j) for i, p in predicted for j, t in true]
    matches = [pair for pair in pairs if pair[0] > 0.5]
    found, hit = {i for _, i, _ in matches}, {j for *_, j in matches}
    wrong = [i for i, p in predicted if i not in found and 2 * len(p & void) <= len(p)]
    total = len(matches) + len(wrong) / 2 + (len(true) - len(hit)) / 2
    return sum(iou for iou, *_ in matches) / total if total else None


@WAYS.to_compute("14", "panoptic_quality", seeds=range(4), rtol=1e-6, atol=1e-12)
def by_sets_of_pixels(predicted, predicted_classes, true, true_classes):
    sides = []
    for numbers, classes in ((predicted, predicted_classes.tolist()), (true, true_classes.tolist())):
        sides.append([({*map(tuple, (numbers == n).nonzero().tolist())}, c) for n, c in enumerate(classes)])
    assert all(pixels for side in sides for pixels, _ in side)  # no segment is without a pixel
    void, values = {*map(tuple, (true == -1).nonzero().tolist())}, []
    for c in {kind for side in sides for _, kind in side}:
        of_class = ([(i, pixels) for i, (pixels, kind) in enumerate(side) if kind == c] for side in sides)
        values.append(quality(*of_class, void))
    counted = [value for value in values if value is not None]
    assert 0 < sum(counted) < len(counted)
    return sum(counted) / len(counted)


# 15: spans, chunks, alignments ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("T", "rate", "mean_length"), [(100, 0.15, 3.0), (40, 0.5, 2.0), (30, 0.8, 1.5), (5, 0.1, 3.0)]
)
def test_spans_are_as_many_and_as_long_as_in_the_library(T, rate, mean_length):
    ours = random_spans(T, rate=rate, mean_span=mean_length, generator=torch.Generator().manual_seed(0))
    found = reference("15", "span_mask")(torch.rand(6, T), torch.rand(6, T), rate, mean_length)
    assert (found.sum(dim=1) == ours.sum()).all() and not found[:, 0].any() and found[:, -1].all()
    starts = [(mask[1:] & ~mask[:-1]).sum() for mask in (*found, ours)]
    assert len(set(map(int, starts))) == 1


def test_all_ways_to_cut_the_text_are_equally_probable():
    u, v = torch.rand(2, 9_000, 6, generator=torch.Generator().manual_seed(0))
    masks = reference("15", "span_mask")(u, v, 0.5, 1.5)  # 3 tokens in 2 spans, 3 kept in 2 pieces: 2 x 2 ways
    _, counts = masks.unique(dim=0, return_counts=True)
    assert len(counts) == 4 and (counts - 2250).abs().max() < 200


def test_chunks_of_one_frame_are_causal_and_a_single_chunk_sees_all():
    mask = reference("15", "chunk_mask")
    assert torch.equal(mask(torch.tensor([7]), 7, 1, 7)[0], torch.ones(7, 7).tril().bool())
    assert mask(torch.tensor([7]), 7, 7, 0).all()


@WAYS.to_compute("15", "text_infilling", seeds=(2,))
def by_a_loop_over_gaps(ids, u, v, rate, mean, mask_id):
    n, spans = round(rate * len(ids)), []
    while sum(spans) < n:
        length, below, p = 0, 0.0, math.exp(-mean)
        while below + p <= u[len(spans)]:
            length, below, p = length + 1, below + p, p * mean / (length + 1)
        spans.append(min(length, n - sum(spans)))
    chosen = sorted(sorted(range(len(ids) - n + 1), key=lambda gap: v[gap].item())[: len(spans)])
    rest, filled = ids.tolist(), []
    for gap in range(len(ids) - n + 1):
        if gap in chosen:
            filled.append(mask_id)
            del rest[: spans[chosen.index(gap)]]
        filled += rest[:1]
        del rest[:1]
    return torch.tensor(filled)


@WAYS.to_compute("15", "look_ahead_mask", seeds=(3,))
def by_a_loop_over_frames_and_copies(lengths, T, size, left, right):
    positions = [(c, (c + 1) * size + r, True) for c in range(-(-T // size)) for r in range(right)]
    positions += [(t // size, t, False) for t in range(T)]

    def sees(length, chunk, other, frame, copy):
        before = not copy and chunk * size - left <= frame < chunk * size
        return frame < length and (chunk == other or before)

    return torch.tensor(
        [[[sees(n, chunk, *one) for one in positions] for chunk, *_ in positions] for n in lengths.tolist()]
    )


@WAYS.to_compute(
    "15",
    "align",
    *((Draw(len(text))(1, 5, 3).log_softmax(dim=2), torch.tensor([text])) for text in ([1], [1, 2], [1, 1], [2, 1, 2])),
)
def by_the_best_of_all_paths_that_collapse_to_the_text(log_probs, targets):
    paths = [path for path in itertools.product(range(3), repeat=5) if collapse(path) == targets[0].tolist()]
    best = max(paths, key=lambda path: sum(log_probs[0, t, k].item() for t, k in enumerate(path)))
    return torch.tensor([best])


@pytest.mark.parametrize("text", [[], [1], [2, 2, 1]])
def test_the_loss_of_a_transducer_sums_over_all_ways_to_write_the_text(text):
    U, T = len(text), 3
    log_probs = Draw(U)(1, T + 1, 4, 3).log_softmax(dim=-1)  # a frame and perhaps symbols of padding
    targets = torch.tensor([text + [0] * (3 - U)])
    total = 0.0
    for written in itertools.combinations_with_replacement(range(T), U):  # the frame of each symbol
        log_p = sum(log_probs[0, t, u, text[u]] for u, t in enumerate(written))
        log_p += sum(log_probs[0, t, sum(frame <= t for frame in written), 0] for t in range(T))
        total += log_p.exp()
    found = reference("15", "transducer_loss")(log_probs, targets, torch.tensor([T]), torch.tensor([U]))
    torch.testing.assert_close(found, -total.log()[None])


@WAYS.to_compute("15", "occupation", seeds=range(3), double=True)
def by_the_lattice_of_the_library_and_the_gradient_of_torch(log_probs, targets):
    B, T, V = log_probs.shape
    frames, lengths = torch.full((B,), T), torch.full((B,), targets.shape[1])
    ours = ctc_lattice(log_probs, targets, frames, lengths).of_symbols(V)
    logits = log_probs.clone().requires_grad_()
    F.ctc_loss(logits.log_softmax(dim=2).transpose(0, 1), targets, frames, lengths, reduction="sum").backward()
    torch.testing.assert_close(log_probs.exp() - ours, logits.grad, atol=1e-6, rtol=1e-4)
    return ours


# 16: decisions -----------------------------------------------------------------------------------------------


def test_without_a_preference_the_actions_are_those_of_the_data_and_a_strong_one_leaves_the_highest_return():
    draw = Draw(0)
    p, given = draw(4, 5).softmax(dim=1), draw(4, 5, 3).softmax(dim=2)
    found = reference("16", "expert_policy")(p.log(), draw(5), given.log(), 0.0)
    torch.testing.assert_close(found, torch.einsum("bk,bka->ba", p, given))
    found = reference("16", "expert_policy")(p.log(), torch.arange(5.0), given.log(), 100.0)
    torch.testing.assert_close(found, given[:, -1])


@WAYS.to_compute("16", "temporal_ensemble", cases=slice(3), seeds=(4,))
def by_a_loop_over_predictions(chunks, m):
    actions, K = [], chunks.shape[2]
    for t in range(chunks.shape[1]):
        made = [step for step in range(t + 1) if t - step < K]  # the oldest first
        weights = [math.exp(-m * i) for i in range(len(made))]
        total = sum(weight * chunks[:, step, t - step] for weight, step in zip(weights, made, strict=True))
        actions.append(total / sum(weights))
    return torch.stack(actions, dim=1)


def test_predictions_that_agree_are_what_the_agent_does():
    actions = torch.randn(2, 205, 3)
    chunks = torch.stack([actions[:, t : t + 5] for t in range(200)], dim=1)
    torch.testing.assert_close(reference("16", "temporal_ensemble")(chunks, 2.0), actions[:, :200])


def test_with_all_transitions_the_table_is_that_of_value_iteration():
    S, A, gamma, draw = 6, 3, 0.9, Draw(0)
    rewards, following = draw(S, A).double(), draw.integers(-1, S, S, A)
    values = torch.zeros(S, dtype=torch.float64)
    for _ in range(300):
        after = torch.cat([values, values.new_zeros(1)])[following]  # the index -1 is the end
        values = (rewards + gamma * after).amax(dim=1)
    pairs = torch.cartesian_prod(torch.arange(S), torch.arange(A))
    states, actions = pairs[draw(len(pairs)).argsort()].unbind(dim=1)
    given = states, actions, rewards[states, actions], following[states, actions]
    found = reference("16", "stitch")(*given, S, A, gamma, 300)
    torch.testing.assert_close(found.amax(dim=1), values)


def test_the_expectile_approaches_the_maximum():
    for case in table("16", "implicit_q").cases:
        *given, _, sweeps = doubled(case.inputs(Draw(4)))
        found = reference("16", "implicit_q")(*given, 1 - 1e-6, sweeps)
        torch.testing.assert_close(found, reference("16", "stitch")(*given, sweeps), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("tau", [0.5, 0.7, 0.9])
def test_one_more_sweep_of_implicit_q_uses_the_expectile_of_a_search(tau):
    for case in table("16", "implicit_q").cases:
        states, actions, rewards, following, S, A, gamma, _, _ = case.inputs(Draw(4))
        given = states, actions, rewards, following, S, A, gamma, tau
        before, after = (reference("16", "implicit_q")(*given, sweeps) for sweeps in (3, 4))
        values = torch.zeros(S + 1)  # the last is the end
        grid = torch.linspace(-20, 10, 30001)[:, None]
        for state in states.unique():
            known = before[state, actions[states == state]]
            losses = ((tau - (known < grid).float()).abs() * (known - grid) ** 2).sum(dim=1)
            values[state] = grid[losses.argmin(), 0]
        for state, action in set(zip(states.tolist(), actions.tolist(), strict=True)):
            there = (states == state) & (actions == action)
            wanted = (rewards[there] + gamma * values[following[there]]).mean()
            torch.testing.assert_close(after[state, action], wanted, atol=3e-3, rtol=0)


@WAYS.to_compute("16", "sigmoid_loss", (Draw(0)(5, 4), Draw(1)(7, 4), Draw(2)(5, 7) > 0, 3.0, -1.0))
def by_the_binary_cross_entropy_of_torch_summed_over_the_texts(images, texts, matches, scale, bias):
    logits = scale * F.cosine_similarity(images[:, None], texts, dim=2) + bias
    return F.binary_cross_entropy_with_logits(logits, matches.float(), reduction="sum") / len(images)


def test_the_first_loss_of_siglip_is_what_the_graded_answer_says():
    N, loss = 1000, reference("16", "sigmoid_loss")
    images, texts = torch.eye(2 * N)[:N], torch.eye(2 * N)[N:]  # all cosines are 0
    assert loss(images, texts, torch.eye(N) > 0, 10.0, -10.0).item() == pytest.approx(10.05, abs=0.01)
    assert loss(images, texts, torch.eye(N) > 0, 10.0, 0.0).item() == pytest.approx(N * math.log(2), abs=0.1)


@WAYS.to_compute("16", "late_interaction", seeds=(4,))
def by_a_loop_over_images_and_texts(patches, words, counts, scale):
    N = len(patches)
    s, t = torch.zeros(N, N), torch.zeros(N, N)
    for i, j in itertools.product(range(N), repeat=2):
        cosines = F.cosine_similarity(patches[i][:, None], words[j, : counts[j]], dim=2)
        s[i, j], t[i, j] = cosines.amax(dim=1).mean(), cosines.amax(dim=0).mean()
    return -((scale * s).log_softmax(dim=1).diag() + (scale * t).log_softmax(dim=0).diag()).mean() / 2


@WAYS.to_compute("16", "zero_shot", (Draw(0)(5, 4), Draw(1)(3, 1, 4), torch.ones(3).long(), 0.1))
def by_a_softmax_of_cosines_with_one_prompt_for_each_class(images, prompts, counts, temperature):
    return (F.cosine_similarity(images[:, None], prompts[:, 0], dim=2) / temperature).softmax(dim=1)


# 17: retention, caches, machines -----------------------------------------------------------------------------

DRAW = Draw(0)
QKV, SIZES = (DRAW(2, 3, 13, 4), DRAW(2, 3, 13, 4), DRAW(2, 3, 13, 5)), (1, 2, 5, 13, 20)
RETAINED = [(*QKV, torch.tensor([0.5, 0.9, 1.0]), size) for size in SIZES]
CORRECTED = [(QKV[0], QKV[1] / 2, QKV[2], DRAW(2, 3, 13).sigmoid(), size) for size in SIZES]


@WAYS.to_compute("17", "retention", *RETAINED)
def one_by_one(q, k, v, decay, size):
    S, outputs = 0, []
    for t in range(q.shape[2]):
        S = decay[:, None, None] * S + k[:, :, t, :, None] * v[:, :, t, None]
        outputs.append((q[:, :, t, None] @ S)[:, :, 0])
    return torch.stack(outputs, dim=2)


@WAYS.to_compute("17", "retention", *RETAINED)
def all_at_once(q, k, v, decay, size):
    i = torch.arange(q.shape[2])
    powers = decay[:, None, None] ** (i[:, None] - i).clamp(min=0)
    return (q @ k.mT * powers.tril()) @ v


@WAYS.to_compute("17", "delta_rule", *CORRECTED)
def corrected_one_by_one(q, k, v, beta, size):
    S, outputs = q.new_zeros(*q.shape[:2], q.shape[-1], v.shape[-1]), []
    for t in range(q.shape[2]):
        held = (k[:, :, t, None] @ S)[:, :, 0]
        S = S + torch.einsum("bh,bhk,bhv->bhkv", beta[:, :, t], k[:, :, t], v[:, :, t] - held)
        outputs.append((q[:, :, t, None] @ S)[:, :, 0])
    return torch.stack(outputs, dim=2)


def test_the_delta_rule_reads_the_last_value_that_was_written_for_a_key():
    which, v = torch.tensor([0, 1, 0, 2, 1, 0, 0]), torch.randn(1, 1, 7, 4)
    k = torch.eye(3)[which][None, None]
    found = reference("17", "delta_rule")(k.roll(1, dims=2), k, v, torch.ones(1, 1, 7), 3)
    torch.testing.assert_close(found[0, 0, [1, 2, 3, 5, 6]], v[0, 0, [0, 1, 2, 4, 6]])


@WAYS.to_compute("17", "dispatch", cases=slice(2, 3), seeds=range(5))
def by_a_loop_over_the_choices(gates, capacity):
    places, used = torch.full(gates.shape, -1), [0] * gates.shape[1]
    for r in range(gates.shape[1]):
        for n, row in enumerate(gates.tolist()):
            e = sorted(range(len(row)), key=lambda one: -row[one])[r]
            if row[e] > 0 and used[e] < capacity:
                places[n, e] = used[e]
                used[e] += 1
    assert max(used) == capacity and (places >= 0).sum() < (gates > 0).sum()
    return places


Q, K, V, SLOPES = Draw(0)(3, 4), Draw(1)(3, 6, 4), Draw(2)(3, 6, 5), torch.tensor([0.1, 0.3, 0.5])


@WAYS.to_compute("17", "streaming_attention", *((Q, K, V, SLOPES, *of) for of in ((6, 0), (9, 2), (3, 3), (1, 8))))
def by_attention_with_a_penalty_for_distance_where_the_cache_holds_all(q, k, v, slopes, window, sinks):
    bias = -slopes[:, None, None] * torch.arange(5, -1, -1)
    return F.scaled_dot_product_attention(q[:, None], k, v, attn_mask=bias)[:, 0]


@WAYS.to_compute("17", "heavy_hitters", seeds=range(3))
def with_lists(q, k, v, heavy, recent):
    outputs = [[] for _ in q]
    for h, head in enumerate(outputs):
        cache, total = [], {}
        for t in range(q.shape[1]):
            cache.append(t)
            weights = (k[h, cache] @ q[h, t] / q.shape[2] ** 0.5).softmax(dim=0)
            head.append(weights @ v[h, cache])
            for token, weight in zip(cache, weights.tolist(), strict=True):
                total[token] = total.get(token, 0.0) + weight
            if len(cache) > heavy + recent:
                cache.remove(min(cache[:-recent], key=total.get))
    return torch.stack([torch.stack(head) for head in outputs])


def minus_free_energy(v, W, b, c):
    return v @ b + F.softplus(v @ W.T + c).sum(dim=1)


@pytest.mark.parametrize(("H", "V"), [(3, 7), (7, 3), (4, 4)])
def test_the_probabilities_of_all_visible_states_add_up_to_one(H, V):
    W, b, c = Draw(0)(H, V).double(), Draw(1)(V).double(), Draw(2)(H).double()
    v, log_z = of_17.states(V).double(), reference("17", "log_partition")(W, b, c)
    for log_p in (of_17.log_likelihood(v, W, b, c), minus_free_energy(v, W, b, c) - log_z):
        torch.testing.assert_close(log_p.exp().sum(), torch.tensor(1.0).double())


DRAW = Draw(0)


@WAYS.to_compute("17", "pseudo_log_likelihood", (DRAW.integers(0, 2, 5, 6), DRAW(3, 6), DRAW(6), DRAW(3)))
def pixel_by_pixel(v, W, b, c):
    v, total = v.to(W.dtype), 0
    for i in range(len(b)):
        flipped = torch.where(torch.arange(len(b)) == i, 1 - v, v)
        total = total + F.logsigmoid(minus_free_energy(v, W, b, c) - minus_free_energy(flipped, W, b, c))
    return total


def test_the_pseudo_likelihood_is_the_product_of_the_conditionals_of_the_joint_distribution():
    draw, v = Draw(0), of_17.states(4)
    W, b, c = draw(3, 4), draw(4), draw(3)
    joint = of_17.log_likelihood(v, W, b, c).double().exp()
    for row, found in zip(v, reference("17", "pseudo_log_likelihood")(v.long(), W, b, c), strict=True):
        others = [joint[(v != row).sum(dim=1) - (v != row)[:, i].int() == 0] for i in range(4)]
        own = joint[(v == row).all(dim=1)]
        torch.testing.assert_close(found.exp().double(), torch.stack([own[0] / two.sum() for two in others]).prod())


def substituted(q, k, v, beta, size):
    """The delta rule with a loop over the positions of all chunks."""
    size = min(size, q.shape[2])
    missing = -q.shape[2] % size
    q, k, v = (F.pad(x, (0, 0, 0, missing)).unflatten(2, (-1, size)) for x in (q, k, v))
    beta = F.pad(beta, (0, missing)).unflatten(2, (-1, size))[..., None]
    pairs, rows = beta * (k @ k.mT), []
    for i in range(size):
        row = torch.eye(size, dtype=q.dtype)[i].expand(*pairs.shape[:3], 1, size)
        rows.append(row - pairs[..., i, None, :i] @ torch.cat(rows, dim=3) if rows else row)
    solved, S, outputs = torch.cat(rows, dim=3), q.new_zeros(*q.shape[:2], q.shape[-1], v.shape[-1]), []
    for a, b, c, strength, inverse in zip(*(x.unbind(dim=2) for x in (q, k, v, beta, solved)), strict=True):
        u = inverse @ (strength * (c - b @ S))
        outputs.append(a @ S + (a @ b.mT).tril() @ u)
        S = S + b.mT @ u
    whole = torch.cat(outputs, dim=2)
    return whole[:, :, : whole.shape[2] - missing]


def looped(W, b, c):
    """The partition function with a loop over the states of the smaller layer."""
    if len(b) < len(c):
        W, b, c = W.T, c, b
    return torch.stack([h @ c + F.softplus(h @ W + b).sum() for h in of_17.states(len(c))]).logsumexp(dim=0)


def last_alone(*given):
    return reference("17", "retention")(*given)[:, :, -1]


@pytest.mark.parametrize(
    ("name", "answer", "wanted"),
    [
        ("retention", all_at_once, [of_17.ALL_PAIRS.misconception]),
        ("retention", one_by_one, [of_17.ONE_POSITION.misconception]),
        ("retention", last_alone, [WRONG_SHAPE]),
        ("retention", "reference", []),
        ("delta_rule", corrected_one_by_one, [of_17.ONE_POSITION.misconception]),
        ("delta_rule", of_17.ALL_PAIRS.misconception, [of_17.ALL_PAIRS.misconception]),
        ("delta_rule", substituted, []),
        ("delta_rule", "reference", []),
        ("pseudo_log_likelihood", of_17.ALL_FLIPPED.misconception, [of_17.ALL_FLIPPED.misconception]),
        ("pseudo_log_likelihood", pixel_by_pixel, [of_17.ONE_PIXEL.misconception]),
        ("pseudo_log_likelihood", "reference", []),
        ("log_partition", of_17.LARGER_LAYER.misconception, [of_17.LARGER_LAYER.misconception]),
        ("log_partition", looped, []),
        ("log_partition", "reference", []),
    ],
)
def test_answers_that_cost_too_much_are_told_and_no_others(name, answer, wanted):
    task = table("17", name)
    if isinstance(answer, str):
        answer = made_by(task) if answer == "reference" else mistaken(task, answer)
    assert told(answer, task.checks, task) == wanted


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_reference_returns_what_another_way_to_compute_it_does(way):
    way.compare()
