"""Sixty models of torchvision, timm and transformers, small and with random weights. The list was fixed before the first run."""
import torch
from torch import nn

TORCHVISION = [
    "alexnet", "vgg11", "vgg11_bn", "resnet18", "resnet50", "resnext50_32x4d", "wide_resnet50_2", "densenet121", "squeezenet1_0",
    "squeezenet1_1", "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large", "shufflenet_v2_x0_5", "shufflenet_v2_x1_0",
    "mnasnet0_5", "googlenet", "inception_v3", "efficientnet_b0", "efficientnet_v2_s", "regnet_y_400mf", "regnet_x_400mf",
    "convnext_tiny", "vit_b_16", "swin_t",
]
TIMM = [
    "resnet10t", "resnet18d", "skresnet18", "resnest14d", "seresnext26d_32x4d", "mobilenetv3_small_050", "tf_efficientnet_lite0",
    "ghostnet_050", "repvgg_a0", "dla34", "hrnet_w18_small", "res2net50_26w_4s", "lcnet_050", "convnext_atto", "poolformer_s12",
    "mobilevit_xxs", "edgenext_xx_small", "mixer_s32_224", "deit_tiny_patch16_224", "levit_128s",
]
TRANSFORMERS = ["Bert", "DistilBert", "Roberta", "Albert", "Electra", "GPT2", "OPT", "GPTNeoX", "Llama", "Mistral", "T5Encoder",
                "DebertaV2", "ViT", "DeiT", "Beit"]
NAMES = ([f"torchvision/{name}" for name in TORCHVISION] + [f"timm/{name}" for name in TIMM]
         + [f"transformers/{name}" for name in TRANSFORMERS])
BATCH, TOKENS, WORDS, WIDTH = 8, 16, 100, 64


class Flat(nn.Module):
    """One row of outputs for each sample."""

    def __init__(self, model, pick):
        super().__init__()
        self.model = model
        self.pick = pick

    def forward(self, x):
        return self.pick(self.model(x)).flatten(1)


def of_torchvision(name):
    import torchvision
    sizes = {"inception_v3": 80, "googlenet": 64, "alexnet": 64, "densenet121": 64, "squeezenet1_0": 64, "squeezenet1_1": 64}
    more = {"googlenet": {"aux_logits": False, "init_weights": False}, "inception_v3": {"aux_logits": False, "init_weights": False},
            "vit_b_16": {"image_size": 64}}
    size = sizes.get(name, 64)
    return torchvision.models.get_model(name, num_classes=10, **more.get(name, {})), torch.randn(BATCH, 3, size, size)


def of_timm(name):
    import timm
    size = 224 if name in ("mixer_s32_224", "levit_128s") else 64
    more = {"img_size": 64} if name == "deit_tiny_patch16_224" else {}
    return timm.create_model(name, num_classes=10, **more), torch.randn(BATCH, 3, size, size)


def of_transformers(name):
    import transformers as t
    tokens = torch.randint(0, WORDS, (BATCH, TOKENS))
    small = {"vocab_size": WORDS, "hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
             "max_position_embeddings": 64, "attn_implementation": "eager"}
    image = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "image_size": 32,
             "patch_size": 8, "attn_implementation": "eager"}
    if name in ("ViT", "DeiT", "Beit"):
        return getattr(t, name + "Model")(getattr(t, name + "Config")(**image)), torch.randn(BATCH, 3, 32, 32)
    if name == "DistilBert":
        config = t.DistilBertConfig(vocab_size=WORDS, dim=WIDTH, n_layers=2, n_heads=4, hidden_dim=128, max_position_embeddings=64,
                                    attn_implementation="eager")
    elif name == "GPT2":
        config = t.GPT2Config(vocab_size=WORDS, n_embd=WIDTH, n_layer=2, n_head=4, n_positions=64, use_cache=False,
                              attn_implementation="eager")
    elif name == "OPT":
        config = t.OPTConfig(vocab_size=WORDS, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=4, ffn_dim=128,
                             word_embed_proj_dim=WIDTH, max_position_embeddings=64, use_cache=False, attn_implementation="eager")
    elif name == "T5Encoder":
        config = t.T5Config(vocab_size=WORDS, d_model=WIDTH, d_kv=16, d_ff=128, num_layers=2, num_heads=4)
        return t.T5EncoderModel(config), tokens
    else:
        if name == "Albert":
            small["embedding_size"] = 32
        if name in ("GPTNeoX", "Llama", "Mistral"):
            small["use_cache"] = False
        if name in ("Llama", "Mistral"):
            small["num_key_value_heads"] = 2
        config = getattr(t, name + "Config")(**small)
    return getattr(t, name + "Model")(config), tokens


def make(name):
    """The model in training mode, without dropout, and a batch."""
    torch.manual_seed(3)
    library, short = name.split("/")
    model, batch = {"torchvision": of_torchvision, "timm": of_timm, "transformers": of_transformers}[library](short)
    for module in model.modules():
        for field in ("p", "dropout", "attention_dropout", "attn_drop_prob", "drop_prob"):
            if isinstance(getattr(module, field, None), float):
                setattr(module, field, 0.0)
    pick = (lambda out: out.last_hidden_state) if library == "transformers" else (lambda out: out)
    return Flat(model, pick).train(), batch
