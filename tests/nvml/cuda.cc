// The stand-in for NVIDIA's libcuda.so.1 has the functions that gantry-gpu-scrub calls, on a device
// of 80 GiB whose memory is a list of pieces. A file cuda.txt beside the library may hold these
// lines:
//
//   used MIB        so many MiB are in use by another process
//   fail CALL CODE  the function CALL returns CODE
//   keeps           filling memory has no effect
//
// Each overwriting adds a line to scrubbed.txt there, with the device and the number of MiB.
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#define CUDA_API extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kOutOfMemory = 2, kInvalid = 1, kNoDevice = 100;
constexpr std::size_t kTotal = std::size_t{80} << 30, kContext = std::size_t{500} << 20;

struct Piece {
  std::size_t size = 0, filled = 0;
};

struct Cuda {
  std::string dir, visible;
  std::map<std::string, int> fails;
  std::size_t used = 0;
  bool keeps = false;
  std::map<std::uint64_t, Piece> pieces;
  std::uint64_t next = std::uint64_t{1} << 32;
  std::size_t overwritten = 0;
  bool has_context = false;

  Cuda() {
    Dl_info info{};
    if (::dladdr(&mark, &info) != 0 && info.dli_fname != nullptr) dir = info.dli_fname;
    dir.resize(dir.rfind('/') == std::string::npos ? 0 : dir.rfind('/') + 1);
    const char* devices = std::getenv("CUDA_VISIBLE_DEVICES");
    visible = devices == nullptr ? "" : devices;
    std::ifstream file(dir + "cuda.txt");
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string verb, call;
      words >> verb;
      if (verb == "keeps") keeps = true;
      if (verb == "used") words >> used, used <<= 20;
      if (verb == "fail") words >> call, words >> fails[call];
    }
  }
  [[nodiscard]] std::size_t free() const {
    std::size_t out = kTotal - used - (has_context ? kContext : 0);
    for (const auto& [at, piece] : pieces) out -= piece.size;
    return out;
  }
  // Returns the piece that holds these bytes.
  Piece* find(std::uint64_t at, std::size_t bytes) {
    auto it = pieces.upper_bound(at);
    if (it == pieces.begin()) return nullptr;
    --it;
    return at + bytes <= it->first + it->second.size ? &it->second : nullptr;
  }
  static char mark;  // its address finds the folder of this library
};
char Cuda::mark = 0;

Cuda& cuda() {
  static Cuda one;
  return one;
}

template <class F>
int call(const char* name, F body) {
  const auto fails = cuda().fails.find(name);
  return fails != cuda().fails.end() ? fails->second : body(cuda());
}

}  // namespace

CUDA_API int cuInit(unsigned) {
  return call("cuInit", [](Cuda& c) { return c.visible.size() < 36 ? kNoDevice : 0; });
}
CUDA_API int cuDeviceGetCount(int* count) {
  return call("cuDeviceGetCount", [&](Cuda&) { return *count = 1, 0; });
}
CUDA_API int cuDeviceGet(int* device, int index) {
  return call("cuDeviceGet", [&](Cuda&) { return *device = index, index == 0 ? 0 : kInvalid; });
}
CUDA_API int cuDeviceGetUuid_v2(unsigned char* uuid, int) {
  return call("cuDeviceGetUuid_v2", [&](Cuda& c) {
    std::string digits = c.visible.substr(4);
    std::erase(digits, '-');
    for (std::size_t i = 0; i < 16; ++i)
      uuid[i] = static_cast<unsigned char>(
          std::strtoul(digits.substr(std::min(digits.size(), 2 * i), 2).c_str(), nullptr, 16));
    return 0;
  });
}
CUDA_API int cuDevicePrimaryCtxRetain(void** context, int) {
  return call("cuDevicePrimaryCtxRetain",
              [&](Cuda& c) { return *context = &c, c.has_context = true, 0; });
}
CUDA_API int cuDevicePrimaryCtxRelease_v2(int) {
  return call("cuDevicePrimaryCtxRelease_v2", [](Cuda& c) {
    std::ofstream(c.dir + "scrubbed.txt", std::ios::app)
        << c.visible << ' ' << (c.overwritten >> 20) << '\n';
    return 0;
  });
}
CUDA_API int cuCtxSetCurrent(void* context) {
  return call("cuCtxSetCurrent", [&](Cuda& c) { return context == &c ? 0 : kInvalid; });
}
CUDA_API int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return call("cuMemGetInfo_v2", [&](Cuda& c) { return *free = c.free(), *total = kTotal, 0; });
}
CUDA_API int cuMemAlloc_v2(std::uint64_t* at, std::size_t bytes) {
  return call("cuMemAlloc_v2", [&](Cuda& c) {
    if (bytes > c.free()) return kOutOfMemory;
    *at = c.next;
    c.pieces[c.next] = {bytes, 0};
    c.next += bytes + (std::uint64_t{1} << 21);
    return 0;
  });
}
CUDA_API int cuMemFree_v2(std::uint64_t at) {
  return call("cuMemFree_v2", [&](Cuda& c) { return c.pieces.erase(at) == 1 ? 0 : kInvalid; });
}
CUDA_API int cuMemsetD8_v2(std::uint64_t at, unsigned char value, std::size_t bytes) {
  return call("cuMemsetD8_v2", [&](Cuda& c) {
    Piece* piece = c.find(at, bytes);
    if (piece == nullptr || value != 0) return kInvalid;
    if (!c.keeps) piece->filled = bytes, c.overwritten += bytes;
    return 0;
  });
}
CUDA_API int cuCtxSynchronize() {
  return call("cuCtxSynchronize", [](Cuda&) { return 0; });
}
CUDA_API int cuMemcpyDtoH_v2(void* to, std::uint64_t at, std::size_t bytes) {
  return call("cuMemcpyDtoH_v2", [&](Cuda& c) {
    const Piece* piece = c.find(at, bytes);
    if (piece == nullptr) return kInvalid;
    std::memset(to, piece->filled == piece->size ? 0 : 0xab, bytes);
    return 0;
  });
}
CUDA_API int cuGetErrorString(int code, const char** text) {
  *text = code == kOutOfMemory ? "out of memory" : "stand-in error";
  return 0;
}
