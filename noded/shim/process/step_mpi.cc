#include "noded/shim/process/step_mpi.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "noded/pmi/wire.h"
#include "noded/runtime/job_dir.h"

namespace gantry::runtime {
namespace {

constexpr int kEndPatienceMs = 2'000;              // longest pause in the server's messages
constexpr Duration kLongestTidying = seconds(10);  // longest time for the server's cleanup
// Bytes that were already sent and that out_ may keep before the others.
constexpr std::size_t kMaxKept = 1u << 20;
constexpr const char* kMalformed = "the PMI server of the step says what is no frame";
constexpr std::size_t kMaxComplaint = 2'000;  // bytes of the server's standard error that are shown

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : ",") + word;
  return out;
}

std::vector<std::string> numbers_as_words(const std::vector<std::uint32_t>& numbers) {
  std::vector<std::string> out;
  for (const auto n : numbers) out.push_back(std::to_string(n));
  return out;
}

// The differences between PMIx and PMI-2.
struct Kind {
  const char* option;
  const char* program;  // in the directory of gantry-shim
  const char* name_prefix;
  const char* without;  // why the program may be missing
  const char* needs;    // why it may end at once
};
constexpr Kind kPmix{"--mpi=pmix", "gantry-pmix", "gantry.",
                     "Gantry on this node was built without PMIx",
                     ", which must have libpmix.so.2"};
constexpr Kind kPmi2{"--mpi=pmi2", "gantry-pmi2", "", "gantry-pmi2 is missing on this node", ""};

TaskSpec server_spec(const Shim& shim, const StepRequest& request, const Kind& kind) {
  const std::string id =
      std::to_string(request.key.job.value()) + "." + std::to_string(request.step.value());
  TaskSpec spec;
  spec.argv = {kind.program, kind.name_prefix + id, std::to_string(request.node_index),
               joined(request.nodes), joined(numbers_as_words(request.node_tasks))};
  // The PMIx server passes values through its socket: no shared memory files (gds), no binary node
  // lists (preg).
  spec.env = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + shim.request.owner.home, "TMPDIR=/tmp",
              "PMIX_MCA_gds=hash", "PMIX_MCA_preg=^compress"};
  if (const auto it = request.env.find("LD_LIBRARY_PATH"); it != request.env.end())
    spec.env.push_back("LD_LIBRARY_PATH=" + it->second);
  spec.cpus = request.cpus;
  return spec;
}

// Makes a pair for each task: returns the tasks' ends, and puts the server's into `theirs`, in the
// same order.
Result<std::vector<Fd>> make_sockets(std::size_t tasks, std::vector<Fd>& theirs) {
  std::vector<Fd> out;
  for (std::size_t i = 0; i < tasks; ++i) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      return fail_errno(ErrorCode::runtime_failed, "socketpair");
    out.emplace_back(ends[0]);
    theirs.emplace_back(ends[1]);
  }
  return out;
}

}  // namespace

Result<std::unique_ptr<MpiServer>> MpiServer::start(const Shim& shim, const StepRequest& request,
                                                    const TaskPlace& place, Signals& signals) {
  static_assert(pmix::kSocket == kExtraFd && pmix::kFirstTask == kMoreFd);
  const Kind& kind = request.mpi == proto::StepMpi::pmi2 ? kPmi2 : kPmix;
  const auto cannot = [&](const std::string& why) {
    return tl::unexpected(Error{ErrorCode::unsupported, kind.option + (": " + why)});
  };
  const auto& shim_path = shim.setup.shim_path;
  const std::string path = shim_path.substr(0, shim_path.rfind('/') + 1) + kind.program;
  const Fd program(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!program) return cannot(kind.without);
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno(ErrorCode::runtime_failed, "socketpair");
  std::unique_ptr<MpiServer> server(new MpiServer(Fd(ends[0]), request.task_env.size()));
  std::vector<Fd> theirs;
  theirs.emplace_back(ends[1]);
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const Fd complaints(::memfd_create(kind.program, MFD_CLOEXEC));
  TaskSpec spec = server_spec(shim, request, kind);
  spec.in = spec.out = null.get();
  spec.err = complaints.get();
  spec.extra = theirs.front().get();
  spec.program = program.get();
  if (request.mpi == proto::StepMpi::pmi2) {
    ASSIGN(sockets, make_sockets(request.task_env.size(), theirs));
    server->task_sockets_ = std::move(*sockets);
    for (std::size_t i = 1; i < theirs.size(); ++i) spec.more.push_back(theirs[i].get());
  }
  const auto started = start_tasks({spec}, place);
  theirs.clear();
  if (!started) return tl::unexpected(started.error());
  if (const auto& error = started->front().error; !error.empty())
    return cannot("its server cannot be started in the job's container: " + error);
  if (auto ready = server->await_ready(signals, kind.needs); !ready) {
    std::array<char, kMaxComplaint> said{};
    const ssize_t n = ::pread(complaints.get(), said.data(), said.size(), 0);
    const auto text = trim({said.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))});
    ::kill(started->front().pid, SIGKILL);
    return cannot(ready.error().message + (text.empty() ? "" : ": " + text));
  }
  return server;
}

std::vector<int> MpiServer::sockets(std::uint32_t task) const {
  if (task_sockets_.empty()) return {};
  return {task_sockets_[task].get()};
}

Result<void> MpiServer::await_ready(Signals& signals, const std::string& needs) {
  const Instant deadline = timer_clock() + kMpiPatience;
  pmix::Frame frame;
  for (;;) {
    std::size_t at = 0;
    pmix::Taken taken{};
    while ((taken = pmix::take(in_, at, frame, pmix::kMaxSaidBytes)) == pmix::Taken::frame) {
      if (frame.word == pmix::Word::failed)
        return fail(ErrorCode::unsupported, "its server could not start: " + frame.bytes);
      if (frame.word == pmix::Word::environment && frame.number < environments_.size()) {
        auto words = split(frame.bytes, '\0');
        words.pop_back();
        environments_[frame.number] = std::move(words);
      }
      if (frame.word != pmix::Word::ready) continue;
      in_.erase(0, at);
      return {};
    }
    in_.erase(0, at);
    if (taken == pmix::Taken::malformed) return fail(ErrorCode::unsupported, kMalformed);
    pollfd watched[2] = {{socket_.get(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
    ::poll(watched, 2, 1000);
    for (int s = signals.next(); s != 0; s = signals.next())
      if (s == SIGTERM) return fail(ErrorCode::runtime_failed, "ended by order");
    if (watched[0].revents != 0 && !read())
      return fail(ErrorCode::unsupported, "its server ended in the job's container" + needs);
    if (deadline < timer_clock()) return fail(ErrorCode::timed_out, "its server does not start");
  }
}

bool MpiServer::read() {
  std::array<char, 32 << 10> buffer;
  const ssize_t n = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (n > 0) in_.append(buffer.data(), static_cast<std::size_t>(n));
  if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return true;
  socket_.reset();
  return false;
}

void MpiServer::write() {
  if (out_at_ > kMaxKept) {
    out_.erase(0, out_at_);
    out_at_ = 0;
  }
  while (socket_ && out_at_ < out_.size()) {
    const ssize_t n = ::send(socket_.get(), out_.data() + out_at_, out_.size() - out_at_,
                             MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n <= 0) return;
    out_at_ += static_cast<std::size_t>(n);
  }
  out_.clear();
  out_at_ = 0;
}

void MpiServer::from_peer(std::uint32_t node, std::string_view bytes) {
  if (!socket_) return;
  pmix::append(out_, pmix::Word::peer, node, bytes);
  write();
  if (out_.size() - out_at_ <= kMostMpiBacklog) return;
  fault_ = "the PMI server of the step takes too little of what its peers say";
  out_.clear();
  out_at_ = 0;
}

void MpiServer::give_up(StepIo& io) {
  socket_.reset();
  in_ = {};
  io.aborted(0, std::nullopt, fault_);
}

void MpiServer::serve(StepIo& io) {
  if (!socket_) return;
  if (fault_ != nullptr) return give_up(io);
  write();
  if (!read()) return;
  pass_on(io);
}

void MpiServer::pass_on(StepIo& io) {
  std::size_t at = 0;
  pmix::Frame frame;
  pmix::Taken taken{};
  while ((taken = pmix::take(in_, at, frame, pmix::kMaxSaidBytes)) == pmix::Taken::frame) {
    if (frame.word == pmix::Word::peer) io.peer(frame.number, frame.bytes);
    if (frame.word == pmix::Word::fault) io.aborted(frame.number, std::nullopt, frame.bytes);
    if (frame.word != pmix::Word::abort || frame.bytes.size() < 4) continue;
    std::int32_t status = 0;
    std::memcpy(&status, frame.bytes.data(), sizeof status);
    io.aborted(frame.number, status, frame.bytes.substr(sizeof status));
  }
  in_.erase(0, at);
  if (taken != pmix::Taken::malformed) return;
  fault_ = kMalformed;
  give_up(io);
}

void MpiServer::end(StepIo& io) {
  if (!socket_) return;
  ::shutdown(socket_.get(), SHUT_WR);
  pollfd closing{socket_.get(), POLLIN, 0};
  const Duration until = since_boot() + kLongestTidying;
  while (socket_ && !io.full() && since_boot() < until &&
         ::poll(&closing, 1, kEndPatienceMs) == 1 && read())
    pass_on(io);
  socket_.reset();
}

}  // namespace gantry::runtime
