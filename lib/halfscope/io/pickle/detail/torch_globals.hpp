// The globals that a restricted pickle may name: those of PyTorch and Python that build tensors and
// containers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include <halfscope/core/dtype.hpp>

namespace halfscope {

/// An element type of PyTorch's.
struct TorchType {
  std::string_view name;        ///< "float16"
  std::size_t bytes = 1;        ///< bytes of an element
  std::optional<DType> stored;  ///< nothing: not a floating-point type that halfscope reads
};

enum class TorchGlobalKind : std::uint8_t {
  dict,           ///< a call makes an empty one, or one of a list of pairs
  tuple,          ///< a call gives its argument, a tuple
  tensor,         ///< (storage, offset, size, strides, ...)
  typed_tensor,   ///< the same, with the element type seventh
  parameter,      ///< (tensor, ...) gives the tensor
  of_subclass,    ///< (global, class, arguments, state) calls the global
  unread_tensor,  ///< a tensor without strides in one storage
  storage,        ///< a storage of elements of a type
  type,           ///< an element type
  plain,          ///< a call gives nothing that leads to a tensor
  bytes,          ///< a call gives bytes
};

struct TorchGlobal {
  std::string_view module, name;
  TorchGlobalKind kind{};
  TorchType type{};  ///< type of a storage, or the type itself
};

inline constexpr std::array torch_globals{
    TorchGlobal{"collections", "OrderedDict", TorchGlobalKind::dict},
    TorchGlobal{"collections", "defaultdict", TorchGlobalKind::dict},
    TorchGlobal{"collections", "Counter", TorchGlobalKind::dict},
    TorchGlobal{"builtins", "dict", TorchGlobalKind::dict},
    TorchGlobal{"__builtin__", "dict", TorchGlobalKind::dict},
    TorchGlobal{"builtins", "set", TorchGlobalKind::plain},
    TorchGlobal{"__builtin__", "set", TorchGlobalKind::plain},
    TorchGlobal{"builtins", "list", TorchGlobalKind::plain},
    TorchGlobal{"builtins", "int", TorchGlobalKind::plain},
    TorchGlobal{"builtins", "float", TorchGlobalKind::plain},
    TorchGlobal{"builtins", "complex", TorchGlobalKind::plain},
    TorchGlobal{"__builtin__", "complex", TorchGlobalKind::plain},
    TorchGlobal{"builtins", "bytearray", TorchGlobalKind::bytes},
    TorchGlobal{"__builtin__", "bytearray", TorchGlobalKind::bytes},
    TorchGlobal{"_codecs", "encode", TorchGlobalKind::bytes},  // as older protocols have them
    TorchGlobal{"torch", "device", TorchGlobalKind::plain},
    TorchGlobal{"torch", "Tensor", TorchGlobalKind::plain},  // a class, named by a subclass
    TorchGlobal{"torch.nn.parameter", "Parameter", TorchGlobalKind::plain},
    TorchGlobal{"torch.nn.parameter", "Buffer", TorchGlobalKind::plain},
    TorchGlobal{"torch.serialization", "_get_layout", TorchGlobalKind::plain},
    TorchGlobal{"torch", "Size", TorchGlobalKind::tuple},
    TorchGlobal{"torch._utils", "_rebuild_tensor", TorchGlobalKind::tensor},
    TorchGlobal{"torch._utils", "_rebuild_tensor_v2", TorchGlobalKind::tensor},
    TorchGlobal{"torch._utils", "_rebuild_tensor_v3", TorchGlobalKind::typed_tensor},
    TorchGlobal{"torch._utils", "_rebuild_parameter", TorchGlobalKind::parameter},
    TorchGlobal{"torch._utils", "_rebuild_parameter_with_state", TorchGlobalKind::parameter},
    TorchGlobal{"torch._tensor", "_rebuild_from_type_v2", TorchGlobalKind::of_subclass},
    TorchGlobal{"torch._utils", "_rebuild_qtensor", TorchGlobalKind::unread_tensor},
    TorchGlobal{"torch._utils", "_rebuild_sparse_tensor", TorchGlobalKind::unread_tensor},
    TorchGlobal{"torch._utils", "_rebuild_sparse_csr_tensor", TorchGlobalKind::unread_tensor},
    TorchGlobal{"torch._utils", "_rebuild_nested_tensor", TorchGlobalKind::unread_tensor},
    TorchGlobal{"torch._utils", "_rebuild_meta_tensor_no_storage", TorchGlobalKind::unread_tensor},
    TorchGlobal{"torch", "UntypedStorage", TorchGlobalKind::storage},
    TorchGlobal{"torch.storage", "UntypedStorage", TorchGlobalKind::storage},
    TorchGlobal{"torch", "HalfStorage", TorchGlobalKind::storage, {"float16", 2, DType::f16}},
    TorchGlobal{"torch", "BFloat16Storage", TorchGlobalKind::storage, {"bfloat16", 2, DType::bf16}},
    TorchGlobal{"torch", "FloatStorage", TorchGlobalKind::storage, {"float32", 4, DType::f32}},
    TorchGlobal{"torch", "DoubleStorage", TorchGlobalKind::storage, {"float64", 8, DType::f64}},
    TorchGlobal{"torch", "BoolStorage", TorchGlobalKind::storage, {"bool", 1, {}}},
    TorchGlobal{"torch", "ByteStorage", TorchGlobalKind::storage, {"uint8", 1, {}}},
    TorchGlobal{"torch", "CharStorage", TorchGlobalKind::storage, {"int8", 1, {}}},
    TorchGlobal{"torch", "ShortStorage", TorchGlobalKind::storage, {"int16", 2, {}}},
    TorchGlobal{"torch", "IntStorage", TorchGlobalKind::storage, {"int32", 4, {}}},
    TorchGlobal{"torch", "LongStorage", TorchGlobalKind::storage, {"int64", 8, {}}},
    TorchGlobal{"torch", "ComplexFloatStorage", TorchGlobalKind::storage, {"complex64", 8, {}}},
    TorchGlobal{"torch", "ComplexDoubleStorage", TorchGlobalKind::storage, {"complex128", 16, {}}},
    TorchGlobal{"torch", "QInt8Storage", TorchGlobalKind::storage, {"qint8", 1, {}}},
    TorchGlobal{"torch", "QUInt8Storage", TorchGlobalKind::storage, {"quint8", 1, {}}},
    TorchGlobal{"torch", "QInt32Storage", TorchGlobalKind::storage, {"qint32", 4, {}}},
    TorchGlobal{"torch", "float16", TorchGlobalKind::type, {"float16", 2, DType::f16}},
    TorchGlobal{"torch", "bfloat16", TorchGlobalKind::type, {"bfloat16", 2, DType::bf16}},
    TorchGlobal{"torch", "float32", TorchGlobalKind::type, {"float32", 4, DType::f32}},
    TorchGlobal{"torch", "float64", TorchGlobalKind::type, {"float64", 8, DType::f64}},
    TorchGlobal{"torch", "float8_e4m3fn", TorchGlobalKind::type, {"float8_e4m3fn", 1, DType::f8_e4m3}},
    TorchGlobal{"torch", "float8_e5m2", TorchGlobalKind::type, {"float8_e5m2", 1, DType::f8_e5m2}},
    TorchGlobal{"torch", "float8_e4m3fnuz", TorchGlobalKind::type, {"float8_e4m3fnuz", 1, {}}},
    TorchGlobal{"torch", "float8_e5m2fnuz", TorchGlobalKind::type, {"float8_e5m2fnuz", 1, {}}},
    TorchGlobal{"torch", "float8_e8m0fnu", TorchGlobalKind::type, {"float8_e8m0fnu", 1, {}}},
    TorchGlobal{"torch", "float4_e2m1fn_x2", TorchGlobalKind::type, {"float4_e2m1fn_x2", 1, {}}},
    TorchGlobal{"torch", "bool", TorchGlobalKind::type, {"bool", 1, {}}},
    TorchGlobal{"torch", "uint8", TorchGlobalKind::type, {"uint8", 1, {}}},
    TorchGlobal{"torch", "uint16", TorchGlobalKind::type, {"uint16", 2, {}}},
    TorchGlobal{"torch", "uint32", TorchGlobalKind::type, {"uint32", 4, {}}},
    TorchGlobal{"torch", "uint64", TorchGlobalKind::type, {"uint64", 8, {}}},
    TorchGlobal{"torch", "int8", TorchGlobalKind::type, {"int8", 1, {}}},
    TorchGlobal{"torch", "int16", TorchGlobalKind::type, {"int16", 2, {}}},
    TorchGlobal{"torch", "int32", TorchGlobalKind::type, {"int32", 4, {}}},
    TorchGlobal{"torch", "int64", TorchGlobalKind::type, {"int64", 8, {}}},
    TorchGlobal{"torch", "complex64", TorchGlobalKind::type, {"complex64", 8, {}}},
    TorchGlobal{"torch", "complex128", TorchGlobalKind::type, {"complex128", 16, {}}},
};

}  // namespace halfscope
