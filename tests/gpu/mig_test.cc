// Tests how slices are made and destroyed on the stand-in driver, which follows the rules of
// hardware. A child process also crashes at every single call of the driver, and the next one
// recovers.
#include "noded/gpu/mig/mig.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "tests/gpu/fake_node.h"

namespace gantry::gpu {
namespace {

const char* const kOneGpu = R"([{"model": "h100", "count": 1, "mig": true}])";

struct Partitioned {
  explicit Partitioned(FakeNode& node)
      : nvml(node.open()),
        found(node.look()),
        targets(mig_targets(found)),
        mig(nvml, *MigJournal::open(node.dir() + "/journal")) {}
  const Nvml& nvml;
  Discovery found;
  std::vector<MigTarget> targets;
  MigPartitioner mig;

  std::vector<MigSlice> slices() {
    std::vector<std::string> warnings;
    auto out = slices_of(nvml, targets[0].device, targets[0].geometry->profiles, warnings);
    REQUIRE(out);
    CHECK(warnings == std::vector<std::string>{});  // no instance is incomplete
    return *out;
  }
};

std::vector<std::string> names(const Partitioned& p, const std::vector<MigSlice>& slices) {
  std::vector<std::string> out;
  for (const MigSlice& one : slices)
    out.push_back(
        fmt::format("{}@{}", find_profile(*p.targets[0].geometry, one.profile)->name, one.start));
  return out;
}

using Names = std::vector<std::string>;

TEST_CASE("slices are made at chosen places, and destroyed by UUID") {
  FakeNode node(kOneGpu);
  Partitioned p(node);
  const auto three = p.mig.create(p.targets[0], 9, 4);
  REQUIRE(three);
  CHECK(three->gpu_instance == 1);
  CHECK(three->uuid.starts_with("MIG-"));
  REQUIRE(p.mig.create(p.targets[0], 19, 0));
  REQUIRE(p.mig.create(p.targets[0], 14, 2));
  CHECK(names(p, p.slices()) == Names{"1g.10gb@0", "2g.20gb@2", "3g.40gb@4"});
  CHECK(p.slices()[2] == *three);

  CHECK(p.mig.create(p.targets[0], 19, 2).error().message ==
        "GPU 0 (0000:18:00.0): 2g.20gb at 2 is in the way of 1g.10gb at 2");
  CHECK(p.mig.create(p.targets[0], 19, 7).error().code == ErrorCode::invalid_argument);
  CHECK(p.mig.create(p.targets[0], 77, 0).error().code == ErrorCode::invalid_argument);

  REQUIRE(p.mig.destroy(p.targets[0], *three, {}));
  CHECK(names(p, p.slices()) == Names{"1g.10gb@0", "2g.20gb@2"});
  // destroying a slice that does not exist is no error
  CHECK(p.mig.destroy(p.targets[0], *three, {}));
  const auto again = p.mig.create(p.targets[0], 9, 4);
  REQUIRE(again);
  CHECK(again->gpu_instance == three->gpu_instance);  // the id is reused,
  CHECK(again->uuid != three->uuid);                  // so only the UUID tells the two apart
  CHECK(p.mig.destroy(p.targets[0], *three, {}).error().message.find("another one by now") !=
        std::string::npos);
  CHECK(p.slices().size() == 3);
}

TEST_CASE("two slices of 3g leave one compute slice, and no place for it") {
  FakeNode node(kOneGpu);
  Partitioned p(node);
  REQUIRE(p.mig.create(p.targets[0], 9, 0));
  REQUIRE(p.mig.create(p.targets[0], 9, 4));
  for (std::uint32_t start = 0; start < 7; ++start)
    CHECK(p.mig.create(p.targets[0], 19, start).error().code == ErrorCode::wrong_state);
}

TEST_CASE("a slice that a job or a process uses is not destroyed") {
  FakeNode node(kOneGpu);
  Partitioned p(node);
  const auto slice = p.mig.create(p.targets[0], 19, 3);
  REQUIRE(slice);
  const std::vector<std::string> in_use{slice->uuid};
  CHECK(p.mig.destroy(p.targets[0], *slice, in_use).error().message.find("is a job's") !=
        std::string::npos);
  node.control(fmt::format("process 0/{} 4711 100", slice->gpu_instance));
  CHECK(p.mig.destroy(p.targets[0], *slice, {}).error().message.find("process 4711 runs on MIG-") !=
        std::string::npos);
  CHECK(p.slices().size() == 1);
  node.control("end 0 4711");
  CHECK(p.mig.destroy(p.targets[0], *slice, {}));
  CHECK(p.slices().empty());
}

TEST_CASE("a process that starts just before a slice is destroyed keeps the slice") {
  FakeNode node(kOneGpu);
  Partitioned p(node);
  const auto slice = p.mig.create(p.targets[0], 19, 3);
  REQUIRE(slice);
  node.control("fail nvmlComputeInstanceDestroy 19 1");
  CHECK(p.mig.destroy(p.targets[0], *slice, {}).error().code == ErrorCode::wrong_state);
  CHECK(p.slices().size() == 1);
  CHECK(p.mig.recover(p.targets, {})->empty());  // the journal has nothing to do
}

TEST_CASE("if the driver fails in the middle, what was made of a slice is removed") {
  for (const char* call : {"nvmlDeviceCreateGpuInstanceWithPlacement", "nvmlGpuInstanceGetInfo",
                           "nvmlGpuInstanceGetComputeInstanceProfileInfo",
                           "nvmlGpuInstanceCreateComputeInstance", "nvmlComputeInstanceGetInfo_v2",
                           "nvmlDeviceGetMigDeviceHandleByIndex", "nvmlDeviceGetUUID"}) {
    FakeNode node(kOneGpu);
    Partitioned p(node);
    node.control(fmt::format("fail {} 999 1", call));
    const auto slice = p.mig.create(p.targets[0], 9, 4);
    INFO(call);
    REQUIRE_FALSE(slice);
    CHECK(slice.error().message.find(call) != std::string::npos);
    CHECK(p.slices().empty());
    CHECK(p.mig.recover(p.targets, {})->empty());
    CHECK(p.mig.create(p.targets[0], 9, 4));
  }
}

TEST_CASE("a destruction that failed in the middle is finished from the journal") {
  FakeNode node(kOneGpu);
  Partitioned p(node);
  const auto slice = p.mig.create(p.targets[0], 9, 4);
  REQUIRE(slice);
  node.control("fail nvmlGpuInstanceDestroy 999 1");
  CHECK_FALSE(p.mig.destroy(p.targets[0], *slice, {}));
  CHECK(p.mig.create(p.targets[0], 19, 0).error().code == ErrorCode::wrong_state);
  const auto notes = p.mig.recover(p.targets, {});
  REQUIRE(notes);
  CHECK(*notes == Names{"GPU 0 (0000:18:00.0): a slice that was being destroyed at 4 is gone"});
  CHECK(p.slices().empty());
}

// Runs `body` in a child that ends at its N-th call of the driver; returns true if `body` was
// finished before.
template <class F>
bool in_child(FakeNode& node, std::uint64_t crash_at, F body) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    node.state().crash_at = node.state().calls + crash_at;
    body();
    node.state().crash_at = 0;
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  node.control("well");
  REQUIRE((WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 86));
  return WEXITSTATUS(status) == 0;
}

TEST_CASE("after a crash at any call while a slice is made, it exists whole or not at all") {
  FakeNode node(kOneGpu);
  Partitioned p(node);
  const auto neighbour = p.mig.create(p.targets[0], 19, 0);
  REQUIRE(neighbour);
  node.control("process 0/7 1234 100");
  bool finished = false;
  int crashes = 0, gone = 0, complete = 0;
  for (std::uint64_t at = 1; !finished; ++at) {
    finished = in_child(node, at, [&] { static_cast<void>(p.mig.create(p.targets[0], 9, 4)); });
    const auto notes = p.mig.recover(p.targets, {});
    REQUIRE(notes);
    REQUIRE(p.mig.recover(p.targets, {})->empty());  // nothing is left in the journal
    const auto slices = p.slices();
    CHECK(slices.at(0) == *neighbour);
    crashes += finished ? 0 : 1;
    if (slices.size() == 2) {
      CHECK(names(p, slices)[1] == "3g.40gb@4");
      complete += finished ? 0 : 1;
      REQUIRE(p.mig.destroy(p.targets[0], slices[1], {}));
    } else {
      REQUIRE(slices.size() == 1);
      CHECK_FALSE(finished);
      gone += 1;
    }
    REQUIRE(at < 200);
  }
  CHECK(crashes > 20);
  CHECK(gone > 0);
  CHECK(complete > 0);
}

TEST_CASE("after a crash at any call while a slice is destroyed, it is gone or untouched") {
  FakeNode node(kOneGpu);
  Partitioned p(node);
  const auto neighbour = p.mig.create(p.targets[0], 9, 4);
  REQUIRE(neighbour);
  bool finished = false;
  int half = 0;
  for (std::uint64_t at = 1; !finished; ++at) {
    const auto slice = p.slices().size() == 1 ? p.mig.create(p.targets[0], 14, 2)
                                              : Result<MigSlice>(p.slices()[0]);
    REQUIRE(slice);
    finished =
        in_child(node, at, [&] { static_cast<void>(p.mig.destroy(p.targets[0], *slice, {})); });
    const auto notes = p.mig.recover(p.targets, {});
    REQUIRE(notes);
    half += notes->empty() ? 0 : 1;
    const auto slices = p.slices();
    CHECK(slices.back() == *neighbour);
    REQUIRE(slices.size() <= 2);
    if (slices.size() == 2) CHECK(slices[0] == *slice);  // the destruction had not begun
    if (finished) CHECK(slices.size() == 1);
    REQUIRE(at < 200);
  }
  CHECK(half > 5);
}

TEST_CASE("recovery does not touch a slice that is in use or is another one by now") {
  FakeNode node(kOneGpu);
  Partitioned p(node);
  const auto journal = MigJournal::open(node.dir() + "/journal");
  REQUIRE(journal);
  const auto slice = p.mig.create(p.targets[0], 19, 3);
  REQUIRE(slice);
  const std::string gpu = p.targets[0].gpu->uuid;

  REQUIRE(journal->begin({MigStep::destroy, gpu, *slice}));
  CHECK(p.mig.recover(p.targets, Names{slice->uuid})->at(0).ends_with("is in use and stays"));
  node.control(fmt::format("process 0/{} 77 1", slice->gpu_instance));
  REQUIRE(journal->begin({MigStep::destroy, gpu, *slice}));
  CHECK(p.mig.recover(p.targets, {})->at(0).ends_with("is in use and stays"));
  node.control("end 0 77");

  MigSlice other = *slice;
  other.uuid = "MIG-of-an-earlier-one";
  REQUIRE(journal->begin({MigStep::destroy, gpu, other}));
  CHECK(p.mig.recover(p.targets, {})->at(0).ends_with("is another one by now and stays"));
  CHECK(p.slices() == std::vector<MigSlice>{*slice});

  REQUIRE(journal->begin({MigStep::create, "GPU-that-was-taken-out", *slice}));
  CHECK(p.mig.recover(p.targets, {})->size() == 1);
  CHECK(journal->pending()->empty());
  CHECK_FALSE(journal->begin({MigStep::create, "../escape", *slice}));
}

TEST_CASE("instances without a slice are removed, complete slices stay") {
  FakeNode node(kOneGpu);
  node.control("make 0 19@2 0");
  node.control("make 0 14@4");
  Partitioned p(node);
  const auto notes = p.mig.remove_empty(p.targets[0]);
  REQUIRE(notes);
  CHECK(notes->size() == 1);
  CHECK(names(p, p.slices()) == Names{"2g.20gb@4"});
}

TEST_CASE("random slices are made exactly when the rules of MIG allow them") {
  for (const char* model : {"h100", "a30"}) {
    FakeNode node(fmt::format(R"([{{"model": "{}", "mig": true}}])", model));
    Partitioned p(node);
    std::mt19937 random(11);
    const MigGeometry& geometry = *p.targets[0].geometry;
    for (int i = 0; i < 300; ++i) {
      const auto present = p.slices();
      if (!present.empty() && random() % 3 == 0) {
        REQUIRE(p.mig.destroy(p.targets[0], present[random() % present.size()], {}));
        continue;
      }
      const MigProfile& want = geometry.profiles[random() % geometry.profiles.size()];
      const std::uint32_t start = want.starts[random() % want.starts.size()];
      std::uint32_t compute = want.compute_slices, media = 0;
      bool free = true;
      for (const MigSlice& one : present) {
        const MigProfile& other = *find_profile(geometry, one.profile);
        compute += other.compute_slices;
        media += other.name.ends_with("+me") ? 1 : 0;
        free = free && (start + want.memory_slices <= one.start ||
                        one.start + other.memory_slices <= start);
      }
      const bool allowed =
          free && compute <= geometry.compute_slices && !(want.name.ends_with("+me") && media > 0);
      const auto made = p.mig.create(p.targets[0], want.id, start);
      INFO(model, " ", want.name, "@", start);
      CHECK(made.has_value() == allowed);
    }
  }
}

}  // namespace
}  // namespace gantry::gpu
