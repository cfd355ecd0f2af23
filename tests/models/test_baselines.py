import random

import numpy as np
import pytest
from sklearn import linear_model
from sklearn.feature_extraction import DictVectorizer

from course_lib.models.baselines import LogisticRegression, MajorityClass, bag_of_words, word_windows
from course_lib.models.naive_bayes import NaiveBayes


def sentences(count, seed, *, classes=3):
    """Random words, the label depending on two of them; rows may repeat a word or have none."""
    rng = random.Random(seed)
    rows, labels = [], []
    for _ in range(count):
        row = [rng.choice("abcdefgh") for _ in range(rng.randint(0, 6))]
        rows.append(row)
        labels.append("xyz"[(row.count("a") + 2 * row.count("b") + (rng.random() < 0.2)) % classes])
    return rows, labels


def test_bag_of_words_lists_runs_up_to_the_longest():
    assert bag_of_words(["la", "loi", "est"]) == ["la", "loi", "est"]
    assert bag_of_words(["la", "loi", "est"], longest=3) == ["la", "loi", "est", "la loi", "loi est", "la loi est"]
    assert bag_of_words([], longest=2) == []


def test_word_windows_name_places_and_stop_at_the_ends():
    assert word_windows(["la", "loi", "est"]) == [["0=la", "1=loi"], ["-1=la", "0=loi", "1=est"], ["-1=loi", "0=est"]]
    assert word_windows(["la", "loi"], width=0) == [["0=la"], ["0=loi"]]


@pytest.mark.parametrize(("classes", "l2"), [(2, 1.0), (3, 1.0), (3, 0.1)])
def test_logistic_regression_equals_scikit_learn(classes, l2):
    rows, labels = sentences(80, 0, classes=classes)
    new, _ = sentences(30, 1)
    ours = LogisticRegression(l2=l2).fit(rows, labels)

    vectorizer = DictVectorizer(sparse=False)
    x, x_new = ([{word: float(row.count(word)) for word in row} for row in each] for each in (rows, new))
    x, x_new = vectorizer.fit_transform(x), vectorizer.transform(x_new)
    # two classes have two weight vectors here and one there: w = w_1 - w_0 costs half as much
    strength = l2 / 2 if classes == 2 else l2
    official = linear_model.LogisticRegression(C=1 / strength, solver="newton-cg", tol=1e-11, max_iter=5000)
    wanted = official.fit(x, labels).predict_proba(x_new)
    order = [ours.classes.index(label) for label in official.classes_]
    assert np.abs(ours.probs(new).numpy()[:, order] - wanted).max() < 1e-9
    assert wanted.std() > 0.1
    assert ours.predict(new) == official.predict(x_new).tolist()


def test_features_never_seen_leave_the_other_ones_to_decide():
    model = LogisticRegression().fit([["a"], ["a"], ["b"], ["b"]], [1, 1, 0, 0])
    assert model.predict([["a", "new"], ["new", "b"]]) == [1, 0]
    assert model.probs([["new"], []]).flatten().tolist() == pytest.approx([0.5] * 4)


@pytest.mark.parametrize("classes", [1, 2, 3, 7, 10])
@pytest.mark.parametrize("kinds", [[["a"]], [[]], [["a", "b"]], [["a"], ["b"]]])
def test_examples_that_tell_nothing_make_all_classes_equally_likely(classes, kinds):
    examples, labels = [kind for kind in kinds for _ in range(classes)], [*range(classes)] * len(kinds)
    probs = LogisticRegression().fit(examples, labels).probs([["a"], ["new"], []])
    assert (probs - 1 / classes).abs().max() < 1e-9


def test_no_examples_have_no_probabilities():
    assert LogisticRegression().fit([["a"], ["b"]], [0, 1]).probs([]).shape == (0, 2)


def test_fitting_again_starts_afresh():
    model = LogisticRegression().fit([["a"], ["b"]], [0, 1]).fit([["a"], ["b"]], ["yes", "no"])
    assert model.predict([["a"], ["b"]]) == ["yes", "no"]


def test_scores_of_naive_bayes_are_those_of_a_pencil():
    model = NaiveBayes(smoothing=1.0).fit([["a", "a", "b"], ["b"]], ["x", "y"])
    given = model.log_scores([["a", "c"]]).exp()[0].tolist()  # three features: a, b, and what was never seen
    assert model.classes == ["x", "y"] and given == pytest.approx([1 / 2 * 3 / 6 * 1 / 6, 1 / 2 * 1 / 4 * 1 / 4])
    assert model.predict([["a", "a"]]) == ["x"]


def test_the_majority_class_looks_at_nothing():
    model = MajorityClass().fit([["a"], ["b"], ["c"]], ["x", "y", "y"])
    assert model.predict([["a"], [], ["z"]]) == ["y", "y", "y"]
