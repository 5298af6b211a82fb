// Reads a large JSON object member by member, so that memory does not grow with it.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace halfscope {

/// ArrayView, of one member, that are kept until it is complete.
inline constexpr std::size_t most_member_values = 100'000;

/// Takes a member of the object.
using MemberSink = std::function<void(const std::string& name, const nlohmann::json& value)>;

/// Hands the members of the JSON object `text` to `sink`, in order; false, without a call, where it is a
/// value of another kind. Throws as `parse_json` does, but that a repeated name among the members is left to
/// `sink`, and InvalidArgument for a member of more than most_member_values values.
[[nodiscard]] bool read_json_members(std::string_view text, std::string_view where, const MemberSink& sink);

}  // namespace halfscope
