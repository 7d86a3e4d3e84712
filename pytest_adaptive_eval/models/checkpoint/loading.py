"""Load the model, tokenizer and processor of an examined checkpoint.

Only classes of transformers are used, on local safetensors files. A missing tensor, which transformers would initialise
at random with a log message, is an error. Images need transformers 5.5 or later, whose image processors need only
Pillow.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from packaging.requirements import Requirement

from pytest_adaptive_eval import worker
from pytest_adaptive_eval.deadline import Overdue
from pytest_adaptive_eval.errors import CheckpointError, ConfigError
from pytest_adaptive_eval.models.checkpoint.folder import CheckpointInfo
from pytest_adaptive_eval.models.checkpoint.placement import (
    DTYPES,
    Placement,
    check_memory,
    free_bytes,
    out_of_memory,
    weight_bytes,
)
from pytest_adaptive_eval.models.checkpoint.tokenizers import LOCAL, hf, load_tokenizer
from pytest_adaptive_eval.models.checkpoint.weights import read_object

T = TypeVar("T")

#: Time limit for a configuration or tokenizer, in seconds of processor time.  250 000 words load in about 3 s.
LOAD_SECONDS = 7.0

_DTYPES = {name: getattr(torch, name) for name in DTYPES}

#: Parts of a processor that only videos and sounds use.
_UNUSED_PARTS = frozenset({"video_processor", "feature_extractor"})


@dataclass(frozen=True, slots=True)
class Loaded:
    """A loaded model.

    Args:
        model: In evaluation mode, on its device.
        tokenizer: Pads on the left and has a padding token.
        processor: Only for image-and-text models.
        dtype: Type of the weights as loaded, such as ``float32``.
    """

    model: Any
    tokenizer: Any
    processor: Any
    template: str | None
    device: str
    dtype: str


def check_present(device: str) -> None:
    """Raise a ConfigError for a CUDA device that torch does not find; it is not opened, which would take memory."""
    number = device.partition(":")[2] or "0"
    count = torch.cuda.device_count()
    if number.isdecimal() and int(number) >= count:
        raise ConfigError(f"device {device!r} is not there: torch finds {count} CUDA devices; use auto or cpu")


def pick_device(device: str) -> torch.device:
    """Return the device to compute on; ``auto`` is CUDA if available, otherwise the CPU."""
    if device == "auto":
        if torch.cuda.is_available():
            name = "cuda"
        else:
            name = "cpu"
    else:
        name = device
    try:
        chosen = torch.device(name)
        torch.empty(1, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(f"device {device!r} cannot be used ({error}); use auto, cpu or cuda") from error
    return chosen


def check_torchvision() -> None:
    """Check that torchvision, if it is installed, can be imported.

    transformers and open_clip import torchvision if it is installed, and report its failure as a missing class of their
    own.

    Raises:
        ConfigError: torchvision is installed and its import fails, mostly because torch is of another release or build.
    """
    if importlib.util.find_spec("torchvision") is None:
        return
    try:
        importlib.import_module("torchvision")
    except Exception as error:
        version = importlib.metadata.version("torchvision")
        requires = (Requirement(line) for line in importlib.metadata.requires("torchvision") or ())
        fitting = next((line for line in requires if line.name == "torch"), Requirement("torch"))
        if fitting.specifier.contains(torch.__version__, prereleases=True):
            # CPU and CUDA builds have the same version numbers
            reason = "of another build"
            pair = f"--force-reinstall 'torch=={torch.__version__.partition('+')[0]}'"
        else:
            reason = f"which needs {fitting}"
            pair = f"'{fitting}'"
        raise ConfigError(
            f"torch {torch.__version__} is installed beside torchvision {version}, {reason}, so torchvision "
            f"cannot be imported ({_brief(error)}); install a pair from one package index: "
            f"pip install {pair} 'torchvision=={version}', or, where only text is read: pip uninstall torchvision"
        ) from error


def load_checkpoint(info: CheckpointInfo, placement: Placement | None = None, *, writes: bool = True) -> Loaded:
    """Load an examined checkpoint.

    Args:
        info: From `pytest_adaptive_eval.models.checkpoint.folder.preflight`.
        placement: The type ``auto`` keeps the checkpoint's own on a GPU, and is float32 on a CPU, where half precision
            is several times slower.
        writes: False loads a text encoder, which has no head to generate with.

    Raises:
        CheckpointError: The tokenizer, processor or weights do not load in full.
        ConfigError: The device or the type is not known here, the weights do not fit into the memory, or torchvision
            does not fit torch.
    """
    placement = placement or Placement()
    check_torchvision()  # transformers imports it for text models too
    target = pick_device(placement.device)
    if placement.dtype == "auto" and target.type == "cpu":
        dtype = "float32"
    else:
        dtype = placement.dtype
    _check_room(info, placement, target, dtype)
    with _quiet():
        check_tokenizer(info)
        tokenizer = _part(info, "tokenizer", lambda: load_tokenizer(info.folder))
        processor = None
        if info.kind == "image-text":
            processor = _part(info, "processor", lambda: _processor(info, tokenizer))
        model = _model(info, _arguments(info, placement, target, dtype), writes)
        device_map = getattr(model, "hf_device_map", None)
        if device_map:
            used = {torch.device(device) for device in device_map.values()}
        else:
            used = {target}
        if not device_map:
            model = model.to(target)
    if placement.compile:
        model.compile(dynamic=True)
    return Loaded(
        model=model,
        tokenizer=tokenizer,
        processor=processor,
        template=_template(info, tokenizer, processor),
        device=", ".join(sorted(map(str, used))),
        dtype=str(model.dtype).removeprefix("torch."),
    )


def _check_room(info: CheckpointInfo, placement: Placement, target: torch.device, dtype: str) -> None:
    """Raise a ConfigError if the weights do not fit into the free memory of the devices."""
    devices = [str(target)]
    if placement.device_map is not None:
        devices = [*(f"cuda:{n}" for n in range(torch.cuda.device_count())), "cpu"]
    needed = weight_bytes(info.folder, info.files, dtype)
    check_memory(info.folder, needed, {device: free_bytes(device) for device in devices})


def _arguments(info: CheckpointInfo, placement: Placement, target: torch.device, dtype: str) -> dict[str, Any]:
    """Return the arguments of transformers for type, devices, attention and quantisation."""
    arguments = {"dtype": _DTYPES.get(dtype, "auto")}
    if placement.attention is not None:
        arguments["attn_implementation"] = placement.attention
    if placement.device_map is not None:
        arguments["device_map"] = placement.device_map
    elif info.quantised:  # such weights may not be moved after loading
        arguments["device_map"] = {"": str(target)}
    if info.quantised == "fp8":  # computing in 8 bits needs code that is fetched from elsewhere
        config = read_object(info.folder / "config.json")["quantization_config"]
        unquantised = config.get("modules_to_not_convert", config.get("ignored_layers"))
        arguments["quantization_config"] = hf.FineGrainedFP8Config(dequantize=True, modules_to_not_convert=unquantised)
    return arguments


def check_tokenizer(info: CheckpointInfo) -> None:
    """Load configuration and tokenizer in the worker first; raise CheckpointError if one exceeds the limits."""
    for name in ("config", "tokenizer"):
        check = f"{load_tokenizer.__module__}:check_{name}"
        description = f"loading the {name} of {info.folder}"
        try:
            worker.call(check, str(info.folder), seconds=LOAD_SECONDS, description=description)
        except (Overdue, worker.WorkerFault) as error:
            raise CheckpointError(f"{error}; look at the files of the {name}, or save the checkpoint again") from error
        except worker.Raised:  # the same error ends the load that follows
            continue


def _part(info: CheckpointInfo, name: str, load: Callable[[], T]) -> T:
    try:
        return load()
    except (KeyboardInterrupt, SystemExit, CheckpointError):
        raise
    except BaseException as error:  # a panic in the tokenizers library is no Exception
        raise CheckpointError(
            f"{info.folder}: its {name} cannot be loaded ({_brief(error)}); "
            f"save the {name} into the folder with `{name}.save_pretrained(dir)`"
        ) from error


def _brief(error: BaseException) -> str:
    """Return an error in at most 400 characters; some of transformers list every architecture."""
    text = f"{type(error).__name__}: {error}"
    if len(text) <= 400:
        return text
    return f"{text[:400]} ..."


def _model(info: CheckpointInfo, arguments: dict[str, Any], writes: bool) -> Any:
    auto = hf.AutoModelForImageTextToText if info.kind == "image-text" else hf.AutoModelForCausalLM
    if not writes:
        auto = hf.AutoModel
    try:
        model, report = auto.from_pretrained(
            info.folder,
            use_safetensors=True,
            output_loading_info=True,
            # _complete raises for mismatched shapes, which transformers would only log
            ignore_mismatched_sizes=True,
            **arguments,
            **LOCAL,
        )
    except Exception as error:
        if out_of_memory(error):
            raise ConfigError(
                f"{info.folder}: the memory was spent while the weights were loaded ({_brief(error)}); free some, or "
                'share the weights with device_map = "auto"'
            ) from error
        raise CheckpointError(
            f"{info.folder}: the {info.kind} model ({info.architecture or info.model_type}) cannot be loaded "
            f"({_brief(error)}); save it with `model.save_pretrained(dir)` in a release of "
            f"transformers that {hf.__version__} can read"
        ) from error
    if not writes:  # the model's pooler is not used for embeddings
        report = {kind: {name for name in names if "pooler." not in str(name)} for kind, names in report.items()}
    _complete(info, report)
    check_finite(info, model)
    model.eval()
    return model


def check_finite(info: CheckpointInfo, model: Any) -> None:
    """Raise a CheckpointError for a tensor of a model with a value that is not finite."""
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point() and not tensor.is_meta and not bool(torch.isfinite(tensor).all()):
            raise CheckpointError(
                f"{info.folder}: tensor {name!r} holds values that are not finite; the training has diverged or the "
                "file is damaged: use an earlier checkpoint"
            )


def _complete(info: CheckpointInfo, report: dict[str, Any]) -> None:
    """Raise CheckpointError unless model and files have exactly the same tensors."""
    mismatched = []
    for name, in_file, in_model in sorted(report["mismatched_keys"], key=str):
        mismatched.append(f"{name} ({list(in_file)} in the file, {list(in_model)} in the model)")
    for fault, names in (
        ("missing from the file, and would be random", sorted(report["missing_keys"])),
        ("in the file and not in the model", sorted(report["unexpected_keys"])),
        ("of another shape than config.json says", mismatched),
    ):
        if names:
            if len(names) > 5:
                more = f" and {len(names) - 5} more"
            else:
                more = ""
            raise CheckpointError(
                f"{info.folder}: {len(names)} tensors are {fault}: {', '.join(names[:5])}{more}; config.json and the "
                "weights do not belong together: save both with `model.save_pretrained(dir)`"
            )


def _processor(info: CheckpointInfo, tokenizer: Any) -> Any:
    """Return the processor of an image-and-text model, built without torchvision.

    Images are always processed by Pillow, so an answer does not depend on whether torchvision is installed. Parts
    for videos and sounds, which need it, are left out.
    """
    # several releases hide this class at the top level without torchvision, which this class does not need
    auto: Any = importlib.import_module("transformers.models.auto.image_processing_auto")
    base = _processor_class(info)
    parts = base.get_attributes()
    others = set(parts) - {"tokenizer", "image_processor"} - _UNUSED_PARTS
    if others:
        raise CheckpointError(
            f"{info.folder}: {base.__name__} also needs {', '.join(sorted(others))}; use another model"
        )

    def check(self: Any, name: str, part: Any) -> Any:
        if part is None and name in _UNUSED_PARTS:
            return None
        return base.check_argument_for_proper_class(self, name, part)

    # transformers has no option to leave a part out; only its check of the parts refuses it
    kind: Any = type(base.__name__, (base,), {"check_argument_for_proper_class": check})
    images = auto.AutoImageProcessor.from_pretrained(info.folder, backend="pil", **LOCAL)
    settings, _ = kind.get_processor_dict(info.folder, local_files_only=True)
    parts_by_name = {"tokenizer": tokenizer, "image_processor": images}
    return kind.from_args_and_dict([parts_by_name.get(part) for part in parts], settings)


def _processor_class(info: CheckpointInfo) -> Any:
    for file in ("processor_config.json", "preprocessor_config.json", "tokenizer_config.json"):
        if file in info.files:
            name = read_object(info.folder / file).get("processor_class")
            processor_class = None
            if isinstance(name, str):
                processor_class = getattr(hf, name, None)
            if inspect.isclass(processor_class) and issubclass(processor_class, hf.ProcessorMixin):
                return processor_class
    config = hf.AutoConfig.from_pretrained(info.folder, **LOCAL)
    return hf.PROCESSOR_MAPPING[type(config)]


def _template(info: CheckpointInfo, tokenizer: Any, processor: Any) -> str | None:
    template = getattr(processor, "chat_template", None) or tokenizer.chat_template
    if isinstance(template, dict):
        template = template.get("default")
    if template is not None and not isinstance(template, str):
        raise CheckpointError(f"{info.folder}: its chat template is a {type(template).__name__}, expected text")
    return template or None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress progress bars and load reports of transformers."""
    level = hf.utils.logging.get_verbosity()
    bars = hf.utils.logging.is_progress_bar_enabled()
    hf.utils.logging.set_verbosity_error()
    # HF_HUB_DISABLE_PROGRESS_BARS may keep the bars; then the library warns
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Cannot (dis|en)able progress bars", UserWarning)
        if bars:
            hf.utils.logging.disable_progress_bar()
    try:
        yield
    finally:
        hf.utils.logging.set_verbosity(level)
        if bars:
            hf.utils.logging.enable_progress_bar()
