"""Names of PyTorch's functions as the doctor tells them apart."""

from __future__ import annotations

from typing import Any

# Neither computes numbers, or what it answers is no tensor.
_UNCOUNTED_NAMES = """
    __get__ __set__ __delete__ size stride numel nelement dim ndimension is_floating_point is_complex is_contiguous
    is_same_size storage_offset data_ptr untyped_storage storage element_size get_device register_hook retain_grad
    requires_grad_ register_post_accumulate_grad_hook __len__ __hash__ __repr__ __format__ tolist numpy __array__
    item __bool__ __float__ __int__ __index__ __contains__ is_nonzero is_signed is_inference is_pinned is_shared
    has_names __deepcopy__ __reduce_ex__ _is_view type_ is_tensor is_storage set_ resize_ _typed_storage result_type
    can_cast broadcast_tensors_shape get_default_dtype iscomplex is_sparse
"""
UNCOUNTED = frozenset(_UNCOUNTED_NAMES.split())
_VIEWS_NAMES = """
    view reshape view_as reshape_as transpose swapaxes swapdims permute t movedim moveaxis unsqueeze squeeze flatten
    unflatten expand expand_as broadcast_to narrow select unbind chunk split split_with_sizes tensor_split hsplit
    vsplit diagonal detach __getitem__ contiguous atleast_1d atleast_2d atleast_3d ravel adjoint unfold
    broadcast_tensors alias cpu cuda __iter__
"""
VIEWS = frozenset(_VIEWS_NAMES.split())
CASTS = frozenset(("to", "type", "type_as", "float", "half", "bfloat16"))
WIDE_INSIDE = frozenset(("rms_norm",))
_WITH_BUFFERS = frozenset(("batch_norm", "instance_norm"))
_OPERATORS = "add sub mul div truediv floordiv pow mod matmul and or xor"
_AUGMENTED = frozenset(f"__i{name}__" for name in _OPERATORS.split())


def name_of(func: Any) -> str:
    """A function's name without its namespace: "exp", "__matmul__", "vector_norm" of torch.linalg."""
    name = str(getattr(func, "__name__", "")) or type(func).__name__
    return name.removeprefix("linalg_").removeprefix("special_")


def is_in_place(call: Any) -> bool:
    """Whether a call writes to its first argument."""
    name = call.place.name
    return name in _AUGMENTED or name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))


def has_buffers(call: Any) -> bool:
    """Whether a call writes to buffers that it is given, as to running statistics."""
    return call.place.name in _WITH_BUFFERS
