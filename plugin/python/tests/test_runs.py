"""Networks that keel_norms.torch.load_run makes of runs of keel's program give the program's
answers. KEEL_PROGRAM names the program; without it these tests are skipped."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms import numpy as kn  # noqa: E402
from keel_norms import torch as knn  # noqa: E402
from keel_norms._library import KeelError  # noqa: E402
from keel_norms.torch import run_norms, runs  # noqa: E402

KEEL = os.environ.get("KEEL_PROGRAM")
PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/norm-library.md"
# keel rounds as often as PyTorch does, in another order: both distances from float64 are maxima of
# sums of equally many roundings. One is this many times the other at most.
ORDERS = 8
# Options away from their defaults, of norms that all three tasks take.
ALL = ["none", "layernorm{eps=0.01,unbiased=true,eps_outside=true}", "layernorm{gain=false}",
       "layernorm{bias=false}", "layernorm_simple{eps=0.03}", "detachnorm", "detachmean{eps=0.01}",
       "detachvariance{unbiased=true}", "adanorm{C=2,k=0.3,eps=0.01}", "rmsnorm",
       "rmsnorm{eps=0.1,gain=false}", "rmsnorm{offset=1}", "scalenorm", "seednorm{b_init=0.05}",
       "dyt", "dyt{gain=false,alpha_init=0.8}", "derf{bias=false,shift_init=0.1}",
       "groupnorm{groups=2,eps=0.01}",
       "groupnorm{groups=4,unbiased=true,bias=false}", "groupscaling{groups=2}",
       "layerscaling{eps=0.1}", "batchnorm", "batchnorm{eps=0.1,keep=0.5,gain=false}",
       "batchnorm{mean_penalty=0.5,deviation_penalty=2}",
       "sequencebatchnorm{keep=0.6}", "batchrenorm{rate=0.4,eps=0.01}", "pn_v{keep=0.3,bias=false}",
       "powernorm", "powernorm{mode=paper,alpha_f=0.5}", "mabn{m=2,warmup=1,clip_after=1}",
       "unifiednorm{m=2,warmup=1,clip_after=1}"]
TOKENS = ["powernorm{heads=4,warmup=2}", "powernorm{heads=0,eps=0.1}", "layernorm{axes=1}"]
IMAGES = ["layernorm{per_pixel=true}", "layernorm{axes=2}", "instancenorm{gain=true,bias=true}",
          "instancenorm{eps=0.1}", "adanorm{axes=1}", "weightnorm{eps=0.1}"]
SETTINGS = {"mnist_mlp": {"model.hidden": 32, "data.train_rows": 100, "train.batch": 20},
            "text_classifier": {"model.layers": 2, "model.width": 16, "model.feed_forward": 24,
                                "data.train_rows": 100, "train.batch": 256, "train.warmup": 0},
            "cifar_resnet20": {"model.depth": 8, "model.width": 4, "data.train_rows": 24,
                               "train.batch": 8, "train.optimizer": "adam"},
            "mnist_cnn": {"data.train_rows": 100, "train.batch": 20}}
LINES = ["word1 word2 good5", "Bad6", "", "word12\tNOT8  good26 Unknown words of a longer line",
         *(f"word{i} good5 bad6 word{2 * i} NOT8 word{i + 5}" for i in range(12))]


def part(norms, number):
    """A third of the norms for each of three tasks, or all."""
    return norms if os.environ.get("KEEL_THOROUGH") else norms[number::3]


def keel(*words):
    done = subprocess.run([KEEL, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{words}: {done.stdout}{done.stderr}")
    return done.stdout


def train(task, folder, data="builtin", **more):
    """A short run, in which weights and states move far from the first ones."""
    chosen = {**SETTINGS[task], "train.epochs": 2, "train.lr": 0.01, "train.log_every": 1, **more}
    sets = [word for key, value in chosen.items() for word in ("--set", f"{key}={value}")]
    keel("train", task, "--recipe", "laptop", "--out", folder, "--threads", 1, "--quiet",
         "--data", data, *sets)


def pictures(folder, count, colours, side):
    """Random pictures as arrays and as files."""
    shape = (count, colours, side, side) if colours > 1 else (count, side, side)
    images = np.random.default_rng(5).integers(0, 256, shape, np.uint8)
    files = []
    for number, image in enumerate(images):
        files.append(pathlib.Path(folder) / f"{number}.{'ppm' if colours > 1 else 'pgm'}")
        pixels = image.transpose(1, 2, 0) if colours > 1 else image
        files[-1].write_bytes(f"P{6 if colours > 1 else 5}\n{side} {side}\n255\n".encode()
                              + pixels.tobytes())
    return images, files


def as_words(lines):
    return [word for line in lines for word in ("--text", line)]


def inputs_of(task, folder):
    """The arguments of a network's inputs(), and the words by which `keel predict` takes the
    same."""
    if task == "text_classifier":
        return LINES, as_words(LINES)
    return pictures(folder, 12, *((1, 28) if "mnist" in task else (3, 32)))


def answers(checkpoint, classes, words):
    """The logarithms of the probabilities that keel gives to the classes."""
    found = json.loads(keel("predict", checkpoint, "--n-best", 10, "--json", "--threads", 1,
                            *words))
    rows = [row["answers"] if isinstance(row, dict) else row for row in found]
    by_name = [{answer["answer"]: answer["log_probability"] for answer in row} for row in rows]
    return torch.tensor([[row[name] for name in classes] for row in by_name], dtype=torch.float64)


def logarithms(network, inputs):
    with torch.no_grad():
        return network(*inputs).double().log_softmax(1)


@unittest.skipUnless(KEEL, "KEEL_PROGRAM names no keel")
class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def same(self, network, checkpoint, task):
        """Compares the answers of PyTorch and of keel with those of the same network in float64.
        `task` may also be what inputs_of returns."""
        given, words = inputs_of(task, self.folder) if isinstance(task, str) else task
        narrow = logarithms(network, network.inputs(given))
        network.double()
        exact = logarithms(network, network.inputs(given))
        found = answers(checkpoint, network.classes, words)
        rounding = max((narrow - exact).abs().max(), exact.abs().max() * 2**-24)
        self.assertLess((found - exact).abs().max(), ORDERS * rounding)
        self.assertGreater(exact.std(0).max(), 1e-3)  # the answers differ from row to row
        return exact

    def each(self, task, norms, **more):
        for number, text in enumerate(norms):
            with self.subTest(norm=text, **more):
                run = self.folder / f"{number}"
                train(task, run, **{"model.norm": text, **more})
                self.same(knn.load_run(run), run, task)

    def test_mnist_mlp(self):
        self.each("mnist_mlp", [*part(ALL, 0), "powernorm{heads=2,warmup=2}", "layernorm{axes=1}",
                                "weightnorm{eps=0.1}"])

    def test_cifar_resnet20(self):
        self.each("cifar_resnet20", [*part(ALL, 1), *IMAGES])

    def test_text_classifier(self):
        self.each("text_classifier", [*part(ALL, 2), *TOKENS])

    def test_text_classifier_with_other_options(self):
        for number, options in enumerate((
                {"scaling": "groupscaling{groups=4}", "norm": "powernorm{heads=0}"},
                {"place": "post", "norm": "batchnorm"}, {"positions": "learned"},
                {"lower_case": "false", "norm": "none", "scaling": "layerscaling"},
                {"heads": 1, "task": "sst5"})):
            with self.subTest(**options):
                run = self.folder / f"options{number}"
                train("text_classifier", run, **{f"model.{k}": v for k, v in options.items()})
                self.same(knn.load_run(run), run, "text_classifier")

    def test_words_and_labels_of_a_users_own(self):
        """Only capitals of Windows-1252 become small, and words may have any character."""
        texts = ["Über ñandú ŠKODA", "ИВАН иван x\u2028y", "Ÿ ÿ\u0085 À ×", "İ ı ß"]
        rows = [(f"{texts[i % 4]} {texts[(i * i + 1) % 4]}", ("non", "Oui", "7")[i % 3])
                for i in range(60)]
        (self.folder / "data").mkdir()
        (self.folder / "data/train.tsv").write_text(
            "".join(f"{label}\t{text}\n" for text, label in rows), encoding="utf-8")
        run = self.folder / "run"
        train("text_classifier", run, self.folder / "data", **{"model.task": "files"})
        lines = [*texts, "ÜBER", "Иван", "\u2028", "ñANDÚ ÿ i"]
        self.same(knn.load_run(run), run, (lines, as_words(lines)))

    def test_options_that_a_norm_may_leave_out(self):
        self.each("mnist_mlp", ["batchnorm"],
                  **{"model.batchnorm_options": "eps=0.2,keep=0.5,unbiased=true"})

    def test_best_last_and_averaged_weights(self):
        run = self.folder / "run"
        train("mnist_mlp", run, **{"train.epochs": 4, "train.keep_checkpoints": 3,
                                   "train.average_last": 3, "train.lr": 0.1})
        files = sorted((run / "checkpoints").glob("step-*.safetensors"))
        chosen = [run, *files, run / "average.safetensors"]
        found = [self.same(knn.load_run(path), path, "mnist_mlp") for path in chosen]
        best = knn.load_run(run / "checkpoints/best.safetensors").double()
        given, _ = inputs_of("mnist_mlp", self.folder)
        self.assertTrue(torch.equal(found[0], logarithms(best, best.inputs(given))))
        for a, b in zip(found[1:], found[2:]):  # of other updates, and their mean
            self.assertGreater((a - b).abs().max(), 1e-3)

    def test_the_program_of_the_docs(self):
        """It loads mnist_cnn, which load_run does not know."""
        program = re.search(r"```python\n(from keel_norms\.torch import runs\n.*?)```",
                            PAGE.read_text(encoding="utf-8"), re.S)[1]
        run = self.folder / "runs/cnn"
        train("mnist_cnn", run, **{"model.norm": "groupnorm{groups=2}",
                                   "model.architecture": "C"})
        names = {}
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            exec(program, names)
        finally:
            os.chdir(before)
        network = names["network"]
        network.classes = [str(digit) for digit in range(10)]
        network.inputs = lambda images: (
            ((torch.as_tensor(images).unsqueeze(1) / 255 - 0.1307) / 0.3081).to(
                next(network.parameters())),)
        self.same(network, run, "mnist_cnn")

    def test_training_goes_on_as_the_recipe_says(self):
        run = self.folder / "run"
        train("mnist_mlp", run, **{"model.norm": "batchnorm{keep=0.7,unbiased=true}"})
        norm = knn.load_run(run).fc1.norm.train()
        state = {name: getattr(norm, name).numpy().copy() for name in ("running_mean",
                                                                      "running_var")}
        x = np.random.default_rng(2).standard_normal((9, 32)).astype(np.float32)
        step = kn.batch_norm(x, norm.weight.detach().numpy(), norm.bias.detach().numpy(),
                             state=state, keep=0.7, unbiased=True)
        np.testing.assert_array_equal(norm(torch.from_numpy(x)).detach().numpy(), step.y)
        for name, value in step.next_state.items():
            np.testing.assert_array_equal(getattr(norm, name).numpy(), value)

    def test_a_run_leaves_the_random_numbers_alone(self):
        run = self.folder / "run"
        train("mnist_mlp", run)
        torch.manual_seed(3)
        expected = torch.rand(4)
        torch.manual_seed(3)
        network = knn.load_run(run)
        self.assertFalse(network.training)
        self.assertTrue(torch.equal(torch.rand(4), expected))

    def test_norms_without_a_module(self):
        for task, text, words in (
                ("mnist_mlp", "rmsnorm{bias=true}", "rmsnorm{bias=true}"),
                ("mnist_mlp", "mabn{centralize=true}", "centralize"),
                ("mnist_mlp", "noisybatchnorm", "norm noisybatchnorm: expected one"),
                ("mnist_mlp", "recurrentbatchnorm", "norm recurrentbatchnorm: expected one"),
                ("text_classifier", "instancenorm", "instancenorm.* padding")):
            run = self.folder / re.sub(r"\W", "", text)
            train(task, run, **{"model.norm": text})
            with self.subTest(norm=text), self.assertRaisesRegex(KeelError, words):
                knn.load_run(run)

    def test_other_tasks_are_named(self):
        train("mnist_cnn", self.folder / "run")
        with self.assertRaisesRegex(KeelError, "expected a run of mnist_mlp, .*got one of mnist_c"):
            knn.load_run(self.folder / "run")

    def test_damaged_files(self):
        train("mnist_mlp", self.folder / "run")
        whole = (self.folder / "run/checkpoints/best.safetensors").read_bytes()
        for name, data in (("empty", b""), ("cut", whole[:-4]), ("in the header", whole[:300]),
                           ("a weight", whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:]),
                           ("a size", whole.replace(b'"shape":[32]', b'"shape":[23]', 1)),
                           ("text", b"not a checkpoint\n" * 9)):
            path = self.folder / f"{name}.safetensors"
            path.write_bytes(data)
            with self.subTest(damage=name), self.assertRaisesRegex(KeelError, name):
                knn.load_run(path)
        with self.assertRaisesRegex(FileNotFoundError, "a folder without checkpoints"):
            knn.load_run(self.folder)
        with self.assertRaises(FileNotFoundError):
            knn.load_run(self.folder / "nothing.safetensors")

    def test_tensors_without_a_place(self):
        train("mnist_mlp", self.folder / "run")
        run = runs.read_run(self.folder / "run")
        for change, words in (({"fc3/weight": torch.ones(2)}, "no place for fc3/weight"),
                              ({"fc1/norm/gain": None}, "expected a tensor fc1/norm/gain")):
            tensors = {name: value for name, value in {**run.tensors, **change}.items()
                       if value is not None}
            with self.assertRaisesRegex(KeelError, words):
                runs.fill(runs.NETWORKS["mnist_mlp"](run), run._replace(tensors=tensors))

    def test_wrong_images_are_refused(self):
        train("mnist_mlp", self.folder / "run")
        network = knn.load_run(self.folder / "run")
        for images in (np.zeros((2, 28, 28)), np.zeros((2, 784), np.uint8)):
            with self.assertRaisesRegex(KeelError, r"expected bytes .* \(n, 28, 28\), got"):
                network.inputs(images)

    def test_defaults_are_those_of_the_program(self):
        told = {norm["norm"]: dict(pair.split("=") for pair in norm["defaults"].split())
                for norm in json.loads(keel("list", "norms", "--json"))}
        self.assertEqual(told.keys() - run_norms.DEFAULTS.keys(),
                         {"noisybatchnorm", "recurrentbatchnorm"})
        for name, options in run_norms.DEFAULTS.items():
            self.assertEqual(options.keys(), told[name].keys(), name)
            text = ",".join(f"{key}={value}" for key, value in told[name].items())
            self.assertEqual(run_norms.parse(f"{name}{{{text}}}")[1], options, name)


if __name__ == "__main__":
    unittest.main()
