// gantry-gpu-scrub: overwrites the memory of one GPU or MIG slice with zeros, through NVIDIA's
// driver library, which it loads when it runs. noded runs it before another tenant gets the device,
// while no job has it.
//
//   gantry-gpu-scrub LIBRARY UUID
//
// It takes all the memory that it can get, in pieces of 1 GiB down to 2 MiB, and afterwards reads
// back whether it is zero. Exit status 0: done, and a line tells how much; 1: not done, and a line
// tells why; 3: there is no such library, or it is too old. It is a separate process because a CUDA
// context needs hundreds of MiB of memory, cannot be freed in part, and reads its environment only
// once.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

// The used part of the CUDA driver API (CUDA 11 and later), declared here; see NVIDIA's "CUDA
// Driver API". CUdevice is an int, CUdeviceptr has 64 bits, every call returns a CUresult, 0 =
// success.
using Device = int;
using Pointer = std::uint64_t;
struct Uuid {
  std::array<unsigned char, 16> bytes;
};
static_assert(sizeof(Uuid) == 16);

constexpr int kSuccess = 0;
constexpr std::size_t kLargest = std::size_t{1} << 30, kSmallest = std::size_t{2} << 20;
constexpr std::size_t kLooked = 4096;  // bytes that are read back at both ends of each piece
// The least part of the free memory to overwrite, in per cent: the driver keeps a little.
constexpr std::size_t kEnough = 90;
// Bytes for contexts (including this program's) and page tables.
constexpr std::size_t kOthers = std::size_t{2} << 30;

struct Cuda {
  int (*init)(unsigned);
  int (*count)(int*);
  int (*device)(Device*, int);
  int (*uuid)(Uuid*, Device);
  int (*retain)(void**, Device);
  int (*release)(Device);
  int (*current)(void*);
  int (*memory)(std::size_t* free, std::size_t* total);
  int (*allocate)(Pointer*, std::size_t);
  int (*free)(Pointer);
  int (*fill)(Pointer, unsigned char, std::size_t);
  int (*wait)();
  int (*read)(void*, Pointer, std::size_t);
  int (*text)(int, const char**);
};

std::string no_name;  // first name that the library lacks

template <class F>
void find(void* library, F*& out, const char* name) {
  out = reinterpret_cast<F*>(::dlsym(library, name));
  if (out == nullptr && no_name.empty()) no_name = name;
}

Cuda load(void* library) {
  Cuda out{};
  find(library, out.init, "cuInit");
  find(library, out.count, "cuDeviceGetCount");
  find(library, out.device, "cuDeviceGet");
  find(library, out.uuid, "cuDeviceGetUuid_v2");  // for a slice this returns the slice's own UUID
  find(library, out.retain, "cuDevicePrimaryCtxRetain");
  find(library, out.release, "cuDevicePrimaryCtxRelease_v2");
  find(library, out.current, "cuCtxSetCurrent");
  find(library, out.memory, "cuMemGetInfo_v2");
  find(library, out.allocate, "cuMemAlloc_v2");
  find(library, out.free, "cuMemFree_v2");
  find(library, out.fill, "cuMemsetD8_v2");
  find(library, out.wait, "cuCtxSynchronize");
  find(library, out.read, "cuMemcpyDtoH_v2");
  find(library, out.text, "cuGetErrorString");
  return out;
}

std::string form(const Uuid& uuid) {  // the digits that follow "GPU-" and "MIG-"
  std::string out;
  for (std::size_t i = 0; i < uuid.bytes.size(); ++i) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", uuid.bytes[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += two;
  }
  return out;
}

class Scrub {
 public:
  explicit Scrub(const Cuda& cuda) : cuda_(cuda) {}

  // The caller made only one device visible, by CUDA_VISIBLE_DEVICES.
  bool run(const std::string& wanted) {
    int count = 0;
    Device device = 0;
    Uuid uuid{};
    if (!did("cuInit", cuda_.init(0)) || !did("cuDeviceGetCount", cuda_.count(&count)))
      return false;
    if (count != 1) return fails("CUDA sees " + std::to_string(count) + " devices, not this one");
    if (!did("cuDeviceGet", cuda_.device(&device, 0)) ||
        !did("cuDeviceGetUuid", cuda_.uuid(&uuid, device)))
      return false;
    if (wanted.substr(std::min<std::size_t>(4, wanted.size())) != form(uuid))
      return fails("CUDA shows the device " + form(uuid));
    void* context = nullptr;
    if (!did("cuDevicePrimaryCtxRetain", cuda_.retain(&context, device))) return false;
    const bool done = did("cuCtxSetCurrent", cuda_.current(context)) && overwrite();
    const bool released = did("cuDevicePrimaryCtxRelease", cuda_.release(device));
    return done && released;
  }
  [[nodiscard]] const std::string& why() const { return why_; }
  [[nodiscard]] std::size_t taken() const { return taken_; }
  [[nodiscard]] std::size_t total() const { return total_; }

 private:
  bool fails(std::string why) {
    if (why_.empty()) why_ = std::move(why);
    return false;
  }
  bool did(const char* call, int code) {
    if (code == kSuccess) return true;
    const char* text = nullptr;
    const bool known = cuda_.text(code, &text) == kSuccess && text != nullptr;
    return fails(std::string(call) + ": " + (known ? text : "error " + std::to_string(code)));
  }

  // Memory that is not available in large pieces is taken in small ones.
  void take() {
    for (std::size_t size = kLargest; size >= kSmallest; size /= 2)
      for (Pointer at = 0; cuda_.allocate(&at, size) == kSuccess; taken_ += size)
        pieces_.push_back({at, size});
  }

  bool is_zero(Pointer at) {
    std::vector<unsigned char> bytes(kLooked, 0xff);
    if (!did("cuMemcpyDtoH", cuda_.read(bytes.data(), at, bytes.size()))) return false;
    if (std::ranges::all_of(bytes, [](unsigned char b) { return b == 0; })) return true;
    return fails("what was overwritten is still there");
  }

  bool overwrite() {
    std::size_t free = 0;
    if (!did("cuMemGetInfo", cuda_.memory(&free, &total_))) return false;
    if (free + kOthers < total_)
      return fails("somebody has " + std::to_string((total_ - free) >> 20) + " MiB of its memory");
    take();
    bool good = true;
    for (const auto& [at, size] : pieces_)
      good = good && did("cuMemsetD8", cuda_.fill(at, 0, size));
    good = good && did("cuCtxSynchronize", cuda_.wait());
    for (const auto& [at, size] : pieces_)
      good = good && is_zero(at) && is_zero(at + size - kLooked);
    for (const auto& [at, size] : pieces_) (void)cuda_.free(at);
    if (!good) return false;
    if (taken_ < free / 100 * kEnough)
      return fails("only " + std::to_string(taken_ >> 20) + " of " + std::to_string(free >> 20) +
                   " MiB could be had");
    return true;
  }

  struct Piece {
    Pointer at;
    std::size_t size;
  };
  const Cuda& cuda_;
  std::vector<Piece> pieces_;
  std::size_t taken_ = 0, total_ = 0;
  std::string why_;
};

int no_library(const std::string& why) {
  std::printf("%s\n", why.c_str());
  return 3;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: gantry-gpu-scrub LIBRARY UUID\n", stderr);
    return 2;
  }
  const std::string uuid = argv[2];
  ::setenv("CUDA_VISIBLE_DEVICES", uuid.c_str(), 1);
  ::unsetenv("CUDA_MPS_PIPE_DIRECTORY");
  void* library = ::dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return no_library(::dlerror());
  const Cuda cuda = load(library);
  if (!no_name.empty()) return no_library(std::string(argv[1]) + " has no " + no_name);
  Scrub scrub(cuda);
  if (!scrub.run(uuid)) {
    std::printf("%s\n", scrub.why().c_str());
    return 1;
  }
  std::printf("%zu of %zu MiB\n", scrub.taken() >> 20, scrub.total() >> 20);
  return 0;
}
