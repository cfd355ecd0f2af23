import pytest
import torch
from safetensors.torch import load_file
from transformers import DecisionTransformerConfig as TheirConfig
from transformers import DecisionTransformerModel

from course_lib import weights
from course_lib.models.decision_transformer import DecisionTransformer, DecisionTransformerConfig
from course_lib.weights.decision_transformer import LAYOUT

SIZES = {"state_dim": 5, "act_dim": 3, "max_ep_len": 30, "hidden_size": 12, "n_layer": 2, "n_head": 3, "n_positions": 7}
CONFIGURATIONS = {
    "plain": {},
    "logits": {"action_tanh": False},
    "odd sizes": {"state_dim": 2, "act_dim": 1, "hidden_size": 35, "n_head": 5, "n_inner": 13, "n_layer": 3},
    "gelu and a large eps": {"activation_function": "gelu_new", "layer_norm_epsilon": 0.3},
}
PADDED = torch.tensor([[True] * 6, [False] * 2 + [True] * 4, [True] * 4 + [False] * 2])  # left and right


def official(**settings):
    """An official model with large random weights: its own would hide faults."""
    torch.manual_seed(0)
    config = TheirConfig(**SIZES | {"bos_token_id": None, "eos_token_id": None} | settings)
    model = DecisionTransformerModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            centre = parameter.mean().round() if parameter.ndim == 1 else 0  # 1 for a norm's weight
            parameter.normal_(std=0.2).add_(centre)
    return model


def opened(model, folder):
    """Our model of the same weights."""
    model.save_pretrained(folder)
    return weights.from_pretrained(folder)


def batch(config):
    """Returns to go, states, actions and times."""
    torch.manual_seed(1)
    rows = PADDED.shape
    draws = (torch.randn(*rows, size) for size in (config.state_dim, config.act_dim))
    return torch.randn(rows), *draws, torch.randint(config.max_ep_len, rows)


def their_actions(model, to_go, states, actions, times):
    return model(
        returns_to_go=to_go[..., None], states=states, actions=actions, timesteps=times, attention_mask=PADDED.long()
    ).action_preds


@pytest.mark.parametrize("settings", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_actions_and_input_gradients_agree_with_the_official_model(settings, tmp_path):
    theirs = official(**settings)
    ours, (*given, times) = opened(theirs, tmp_path), batch(theirs.config)
    given = [each.requires_grad_() for each in given]
    expected = their_actions(theirs, *given, times)[PADDED]
    found = ours(*given, times, valid=PADDED)[PADDED]
    assert expected.std() > 0.1
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    weighted = torch.randn_like(expected)
    grads = [torch.autograd.grad((each * weighted).sum(), given) for each in (found, expected)]
    assert all(grad.abs().max() > 0.01 for grad in grads[1])
    torch.testing.assert_close(*grads, rtol=0, atol=1e-5)


@pytest.mark.parametrize("settings", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_the_official_class_opens_what_we_save(settings, tmp_path):
    theirs = official(**settings)
    ours = opened(theirs, tmp_path / "theirs")
    weights.save_pretrained(ours, tmp_path / "ours")
    again, report = DecisionTransformerModel.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(report.values())
    inputs = batch(theirs.config)
    with torch.no_grad():
        expected = their_actions(theirs, *inputs)[PADDED]
        torch.testing.assert_close(their_actions(again, *inputs)[PADDED], expected, rtol=0, atol=1e-5)
    assert weights.from_pretrained(tmp_path / "ours").config == ours.config


def test_a_round_trip_keeps_every_bit_and_the_context(tmp_path):
    torch.manual_seed(0)
    sizes = {"state_dim": 5, "action_dim": 3, "max_steps": 9, "dim": 12, "num_heads": 3}
    ours = DecisionTransformer(DecisionTransformerConfig(**sizes, context_steps=6, dropout=0.25, tanh=False)).eval()
    weights.save_pretrained(ours, tmp_path)
    again = weights.from_pretrained(tmp_path)
    assert again.config == ours.config
    assert all(torch.equal(tensor, again.state_dict()[name]) for name, tensor in ours.state_dict().items())


def test_the_official_models_first_position_becomes_part_of_the_bias(tmp_path):
    theirs = official()
    ours = opened(theirs, tmp_path)
    expected = theirs.embed_ln.bias + theirs.encoder.wpe.weight[0]
    torch.testing.assert_close(ours.embed_norm.bias, expected, rtol=0, atol=0)
    weights.save_pretrained(ours, tmp_path / "ours")
    written = load_file(tmp_path / "ours" / "model.safetensors")
    assert not written["encoder.wpe.weight"].any()


def test_official_defaults_are_ours():
    with torch.device("meta"):
        model = LAYOUT.build(LAYOUT.read_settings(TheirConfig().to_dict()), LAYOUT.architectures[0], frozenset())
    assert model.config == DecisionTransformerConfig()


def test_several_dropouts_are_refused(tmp_path):
    official(attn_pdrop=0.3).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"are \(0.1, 0.1, 0.3\), and we have only one"):
        weights.from_pretrained(tmp_path)
