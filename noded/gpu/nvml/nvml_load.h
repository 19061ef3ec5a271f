// The table of NVML's functions and how they are called; for nvml*.cc only.
#pragma once

#include <dlfcn.h>

#include <cstring>
#include <initializer_list>

#include "noded/gpu/nvml/nvml.h"

namespace gantry::gpu {

template <class F>
struct Call {
  F* function = nullptr;  // nullptr: this driver has none of the function's names
  const char* name = "";
};

struct Nvml::Calls {
#define X(member, arguments, ...) Call<nvml::Return arguments> member;
#include "noded/gpu/nvml/nvml_calls.def"
#undef X

  template <class F>
  static void find(void* library, Call<F>& call, std::initializer_list<const char*> names) {
    call.name = *names.begin();
    for (const char* name : names) {
      call.function = reinterpret_cast<F*>(::dlsym(library, name));
      if (call.function != nullptr) return;
    }
  }

  void load(void* library) {
#define X(member, arguments, ...) find(library, member, {__VA_ARGS__});
#include "noded/gpu/nvml/nvml_calls.def"
#undef X
  }

  // The first missing function of those without which nothing is known about GPUs; nullptr = all
  // are there.
  [[nodiscard]] const char* missing() const {
    if (init.function == nullptr) return init.name;
    if (shutdown.function == nullptr) return shutdown.name;
    if (device_count.function == nullptr) return device_count.name;
    if (device_by_index.function == nullptr) return device_by_index.name;
    if (uuid.function == nullptr) return uuid.name;
    if (name.function == nullptr) return name.name;
    if (minor.function == nullptr) return minor.name;
    if (pci.function == nullptr) return pci.name;
    if (memory.function == nullptr) return memory.name;
    return nullptr;
  }
};

template <class F, class... In>
Answer<void> call(const Call<F>& call, In... in) {
  if (call.function == nullptr)
    return tl::unexpected(Failure{nvml::Return::function_not_found, call.name});
  const nvml::Return code = call.function(in...);
  if (code != nvml::Return::success) return tl::unexpected(Failure{code, call.name});
  return {};
}

// A call whose last argument is the place for the answer.
template <class T, class F, class... In>
Answer<T> get(const Call<F>& function, In... in) {
  T out{};
  TRY(call(function, in..., &out));
  return out;
}

// A call whose last arguments are a buffer and its length.
template <std::uint32_t N, class F, class... In>
Answer<std::string> text(const Call<F>& function, In... in) {
  char buffer[N] = {};
  TRY(call(function, in..., buffer, N));
  return std::string(buffer, ::strnlen(buffer, N));
}

}  // namespace gantry::gpu
