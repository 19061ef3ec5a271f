// Tests orders of noded for its shims that an older release wrote: values that it put into
// variables of the job are read into fields.
#include <doctest/doctest.h>

#include "common/codec/codec.h"
#include "noded/runtime/launch.h"

namespace gantry::runtime {
namespace {

constexpr std::string_view kWithGpus =
    "de00050181010c05a5747261696e09a92f686f6d652f616e6e1284b4435544415f56495349424c455f444556"
    "49434553ab4750552d612c4750552d62b647414e5452595f434845434b504f494e545f46494c45b22f686f6d"
    "652f616e6e2f73617665642d3132af47414e5452595f4750555f4e554d41a3302c31af47414e5452595f4a4f"
    "425f47505553a3302c312282af47414e5452595f4750555f4e554d41a3302c31af47414e5452595f4a4f425f"
    "47505553a3302c31";
// A node without GPUs: here CUDA_VISIBLE_DEVICES is a variable of the user.
constexpr std::string_view kWithoutGpus =
    "de00040181010d05a5706c61696e1282b4435544415f56495349424c455f44455649434553a3302c31ac534c"
    "55524d5f4a4f425f4944a231332281ac534c55524d5f4a4f425f4944a23133";

LaunchRequest of_hex(std::string_view hex) {
  Bytes bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  auto request = codec::decode<LaunchRequest>(bytes);
  REQUIRE(request);
  return std::move(*request);
}

TEST_CASE("GPUs and checkpoint file are read from an order of the previous release") {
  const LaunchRequest r = of_hex(kWithGpus);
  CHECK(r.visible_gpus == std::vector<VisibleGpu>{{"GPU-a", 0}, {"GPU-b", 1}});
  CHECK(r.checkpoint_file == "/home/ann/saved-12");
}

TEST_CASE(
    "a user's variable in an order of the previous release is not taken for a GPU of the job") {
  const LaunchRequest r = of_hex(kWithoutGpus);
  CHECK(r.visible_gpus.empty());
  CHECK(r.checkpoint_file.empty());
}

TEST_CASE("the fields of a present order count, not its variables") {
  LaunchRequest r;
  r.env["CUDA_VISIBLE_DEVICES"] = "GPU-a";
  r.state("GANTRY_JOB_GPUS", "0");
  r.visible_gpus = {{"GPU-b", 3}};
  r.checkpoint_file = "/home/ann/saved";
  const auto read = codec::decode<LaunchRequest>(codec::encode(r));
  REQUIRE(read);
  CHECK(read->visible_gpus == r.visible_gpus);
  CHECK(read->checkpoint_file == "/home/ann/saved");
}

}  // namespace
}  // namespace gantry::runtime
