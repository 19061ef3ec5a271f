// An event declares its kind (permanent), its name, and its fields like this:
//
//   struct JobHeld {
//     JobId job{};
//     GANTRY_EVENT(11, "job_held") { FIELD(1, job); }
//   };
#pragma once

#include <string_view>

#include "common/fields.h"

#define GANTRY_EVENT(kind, name)                  \
  static constexpr bool kIsEvent = true;          \
  static constexpr int kKind = kind;              \
  static constexpr std::string_view kName = name; \
  template <class Self, class V>                  \
  static void fields([[maybe_unused]] Self& s, [[maybe_unused]] V&& v)
