// The version of this build, which every program and the handshake show.
#pragma once

#include <string_view>

namespace gantry {
inline constexpr std::string_view kVersion = "0.1.0";
}
