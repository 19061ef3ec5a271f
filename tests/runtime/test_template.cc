// Tests that each start makes exactly one shim, even if the template of shims dies at the worst
// moments.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "noded/runtime/job_dir.h"
#include "noded/runtime/shim_process.h"
#include "tests/eventually.h"
#include "tests/places.h"

using namespace gantry;
using namespace gantry::runtime;

namespace {

// A state directory with the directory of one job, and with fake_shim.py as the shim.
class Place {
 public:
  explicit Place(const std::string& play) : dir_("/tmp/gantry-template-XXXXXX") {
    REQUIRE(::mkdtemp(dir_.data()) != nullptr);
    REQUIRE(make_dirs(job(), 0700));
    const Fd fd(::open(dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    REQUIRE(write_small(fd.get(), "PLAY", play));
  }
  ~Place() {
    signal_shim(shim_, SIGKILL);
    CHECK(ends(shim_));
    remove_tree(dir_);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  [[nodiscard]] std::string job() const { return dir_ + "/jobs/7.1"; }
  [[nodiscard]] std::string starts() const { return read_file(dir_ + "/STARTS").value_or(""); }
  [[nodiscard]] const std::string& dir() const { return dir_; }

  const ShimProcess& start(ShimTemplate& shims) {
    auto shim = shims.start_shim(job(), {"job", dir_, "7.1"});
    REQUIRE_MESSAGE(shim.has_value(), shim.error().message);
    shim_ = std::move(*shim);
    return shim_;
  }
  // Waits until the shim has reported that it runs.
  void await_start() const {
    eventually([&] { return !starts().empty(); });
  }
  static bool ends(const ShimProcess& shim) {
    pollfd watched{shim.pidfd.get(), POLLIN, 0};
    const bool ended = ::poll(&watched, 1, 20'000) == 1;
    reap_shim(shim);
    return ended;
  }

 private:
  std::string dir_;
  ShimProcess shim_;
};

std::string fake() {
  return source_dir() + "/tests/runtime/fake_shim.py";
}

}  // namespace

TEST_CASE("if the template ends before it made the shim, the shim is started without it") {
  for (const char* play : {"die", "rubbish"}) {
    CAPTURE(play);
    Place place(play);
    ShimTemplate shims(fake(), place.dir(), -1);
    shims.start();
    const int first = shims.pid();
    REQUIRE(first != 0);
    const auto& shim = place.start(shims);
    place.await_start();
    CHECK(place.starts() == "a shim\n");
    ShimProcess found;
    CHECK(find_shim(place.job(), found) == ShimState::alive);
    CHECK(found.pid == shim.pid);
    CHECK(shims.pid() != first);  // the next template
  }
}

TEST_CASE("a template that does not answer is killed, and the shim is started without it") {
  Place place("stop");
  ShimTemplate shims(fake(), place.dir(), -1);
  shims.start();
  place.start(shims);
  place.await_start();
  CHECK(place.starts() == "a shim\n");
}

TEST_CASE("if the template is killed between its fork and its answer, the shim is found") {
  Place place("forked");
  ShimTemplate shims(fake(), place.dir(), -1);
  shims.start();
  const auto& shim = place.start(shims);
  CHECK(place.starts() == "a shim\n");
  pollfd watched{shim.pidfd.get(), POLLIN, 0};
  CHECK(::poll(&watched, 1, 0) == 0);
  signal_shim(shim, SIGKILL);
  CHECK(Place::ends(shim));
}

TEST_CASE("a shim that ended before its template could answer is not started again") {
  Place place("forked-ended");
  ShimTemplate shims(fake(), place.dir(), -1);
  shims.start();
  CHECK(Place::ends(place.start(shims)));
  CHECK(place.starts() == "a shim\n");
}

TEST_CASE("a template that was killed while idle is replaced; one that never works is given up") {
  Place place("die");
  ShimTemplate shims(fake(), place.dir(), -1);
  shims.start();
  int seen = 0;
  for (int last = 0; shims.pid() != 0 && seen < 10; ++seen) {
    last = shims.pid();
    ::kill(last, SIGKILL);
    eventually([&] {
      shims.look();
      return shims.pid() != last;
    });
  }
  CHECK(seen == 3);
  place.start(shims);
  place.await_start();
  CHECK(place.starts() == "a shim\n");
}
