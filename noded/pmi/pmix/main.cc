// gantry-pmix NAMESPACE NODE NODES TASKS: the PMIx server of one step on one node, started by
// gantry-shim beside the step's tasks and with no more rights than they have. NODE is the index of
// this node in NODES, a comma list in the order of ranks; TASKS says how many tasks each node has.
// Descriptor 4 leads to the shim (noded/pmi/wire.h); when that closes, the step is over.
//
// This is a program of its own so that neither gantry-noded nor gantry-shim needs libpmix, and so
// that what tasks send is parsed inside their container.
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "noded/pmi/pmix/server.h"
#include "noded/pmi/wire.h"

namespace gantry::pmix {
namespace {

std::mutex writing;  // threads of libpmix call say(), too

void say(Word word, std::uint32_t number, std::string_view bytes) {
  std::string out;
  append(out, word, number, bytes);
  const std::lock_guard lock(writing);
  for (std::size_t at = 0; at < out.size();) {
    const ssize_t n = ::write(kSocket, out.data() + at, out.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) ::_exit(1);  // the shim is gone, and the step with it
    at += static_cast<std::size_t>(n);
  }
}

void say_to_peer(std::uint32_t node, std::string_view bytes) {
  for (; !bytes.empty(); bytes.remove_prefix(std::min<std::size_t>(bytes.size(), kMaxPeerBytes)))
    say(Word::peer, node, bytes.substr(0, kMaxPeerBytes));
}

void say_abort(std::uint32_t rank, int status, const std::string& why) {
  std::string bytes(reinterpret_cast<const char*>(&status), sizeof status);
  say(Word::abort, rank, bytes + why);
}

void hear(std::string& in) {
  std::size_t at = 0;
  Frame frame;
  while (take(in, at, frame) == Taken::frame)
    if (frame.word == Word::peer) from_peer(frame.number, frame.bytes);
  in.erase(0, at);
}

void serve() {
  std::string in;
  char buffer[32 << 10];
  for (;;) {
    const ssize_t n = ::read(kSocket, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    in.append(buffer, static_cast<std::size_t>(n));
    hear(in);
  }
}

int run(int argc, char** argv) {
  const auto read = read_layout(argc, argv);
  if (!read) {
    std::fputs("usage: gantry-pmix NAMESPACE NODE NODES TASKS, started by gantry-shim\n", stderr);
    return 2;
  }
  const Layout& layout = *read;
  const std::string directory = "/tmp/." + layout.name + "." + argv[2];
  std::error_code ignored;
  std::filesystem::create_directory(directory, ignored);
  const std::string error = start_server(layout, directory, {say_to_peer, say_abort});
  if (error.empty()) {
    for (std::uint32_t task = 0; task < layout.tasks[layout.self]; ++task) {
      std::string bytes;
      for (const auto& word : client_environment(layout, task)) bytes += word + '\0';
      say(Word::environment, task, bytes);
    }
    say(Word::ready, 0, "");
    serve();
    stop_server();
  } else {
    say(Word::failed, 0, error);
  }
  std::filesystem::remove_all(directory, ignored);
  return error.empty() ? 0 : 1;
}

}  // namespace
}  // namespace gantry::pmix

int main(int argc, char** argv) {
  // This program runs with the job's ids. The job's programs may not take its place when it talks
  // to the shim, so they may not trace it.
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  return gantry::pmix::run(argc, argv);
}
