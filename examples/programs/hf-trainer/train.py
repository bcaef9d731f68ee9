"""Trains a tiny BERT with the Trainer of Hugging Face's transformers on made-up sentences, on CPUs. Knows nothing of Medley:

  torchrun --nproc_per_node 2 train.py --output /tmp/hf

The label of a sentence is whether the token 7 is in it more often than the token 8. Saves at SIGUSR1 and every 50 steps, and
continues from the newest complete checkpoint, on any number of processes: they share a batch.
"""
import argparse
import os
import signal

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments, set_seed

parser = argparse.ArgumentParser()
parser.add_argument("--output", required=True)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch", type=int, default=64)
args = parser.parse_args()
world = int(os.environ.get("WORLD_SIZE", "1"))
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
newest = os.path.join(args.output, "newest")  # names the newest checkpoint that is complete


class Sentences(torch.utils.data.Dataset):
    def __init__(self, count, seed):
        self.tokens = torch.randint(5, 15, (count, 16), generator=torch.Generator().manual_seed(seed))
        self.labels = ((self.tokens == 7).sum(1) > (self.tokens == 8).sum(1)).long()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.labels[index]}


class Progress(TrainerCallback):
    """Says each step, and saves when it is asked to."""

    def __init__(self):
        self.wanted = False
        signal.signal(signal.SIGUSR1, self.want)

    def want(self, *_):
        self.wanted = True

    def on_step_end(self, arguments, state, control, **_):
        # All ranks take part in saving, and the signal may come to one of them earlier than to another.
        wanted = torch.tensor(float(self.wanted))
        if world > 1:
            torch.distributed.all_reduce(wanted)
        if wanted or state.global_step == args.steps:
            self.wanted = False
            control.should_save = True

    def on_log(self, arguments, state, control, logs=None, **_):
        if state.is_world_process_zero and logs and "loss" in logs:
            print(f"step {state.global_step} loss {logs['loss']:.4f}", flush=True)

    def on_save(self, arguments, state, control, **_):
        if state.is_world_process_zero:
            with open(newest + ".tmp", "w", encoding="utf-8") as file:
                file.write(f"checkpoint-{state.global_step}")
            os.replace(newest + ".tmp", newest)


set_seed(1)
config = BertConfig(vocab_size=16, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
                    max_position_embeddings=16, hidden_dropout_prob=0, attention_probs_dropout_prob=0)
trainer = Trainer(
    model=BertForSequenceClassification(config),
    args=TrainingArguments(args.output, max_steps=args.steps, per_device_train_batch_size=args.batch // world,
                           per_device_eval_batch_size=256, learning_rate=2e-3, lr_scheduler_type="constant",
                           logging_steps=1, logging_first_step=True, save_steps=50, save_total_limit=2, no_cuda=True,
                           xpu_backend="gloo", report_to=[], disable_tqdm=True, log_level="error", seed=1, optim="adamw_torch",
                           ddp_find_unused_parameters=False),
    train_dataset=Sentences(12800, seed=2), eval_dataset=Sentences(1024, seed=3), callbacks=[Progress()],
    compute_metrics=lambda seen: {"accuracy": float((seen.predictions.argmax(-1) == seen.label_ids).mean())})
from_checkpoint = None
if os.path.exists(newest):
    with open(newest, encoding="utf-8") as file:
        from_checkpoint = os.path.join(args.output, file.read())
trainer.train(resume_from_checkpoint=from_checkpoint)
accuracy = trainer.evaluate()["eval_accuracy"]
if trainer.is_world_process_zero():
    print(f"test accuracy {accuracy:.4f}", flush=True)
