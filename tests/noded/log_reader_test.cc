// Tests the reader of output files: the number of reads that one user may have at a time on a node.
#include "noded/log_reader.h"
#include "tests/skip.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

using namespace gantry;

TEST_CASE("reads of one user that do not end do not stop other users from reading") {
  if (::geteuid() != 0) SKIP_CASE("reading as several users needs root");
  loop::Loop loop;
  std::vector<proto::FetchLogReply> replies;
  std::uint64_t ticket = 0;
  node::LogReader reader(loop, "n1", {}, [&](proto::FetchLogReply&& reply) {
    replies.push_back(std::move(reply));
    if (replies.size() == ticket) loop.stop();
  });
  const auto read = [&](std::uint32_t uid) {
    proto::FetchLog fetch;
    fetch.ticket = ++ticket;
    fetch.path = "/etc/hostname";
    fetch.owner.uid = Uid{uid};
    fetch.owner.gid = Gid{uid};
    fetch.max_bytes = 100;
    reader.read(fetch);
  };
  // The loop does not run, so no read ends, as if the process were stopped.
  for (int i = 0; i < 4; ++i) read(20'001);
  CHECK(replies.empty());
  read(20'001);
  REQUIRE(replies.size() == 1);
  CHECK(replies[0].error == "node n1: /etc/hostname: this user has 4 files being read, try again");
  read(20'002);
  CHECK(replies.size() == 1);
  loop.run();
  REQUIRE(replies.size() == ticket);
  CHECK(std::all_of(replies.begin() + 1, replies.end(),
                    [](const auto& reply) { return reply.error.empty(); }));
  read(20'001);
  CHECK(replies.size() == ticket - 1);
}
