#include "ctld/mailer.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "ctld/users_program.h"

namespace gantry::ctld {
namespace {

constexpr std::chrono::seconds kMostMailTime{60};
constexpr std::chrono::milliseconds kLookForEnd{20};
using Clock = std::chrono::steady_clock;

Error broken(const std::string& program, const std::string& why) {
  return {ErrorCode::io_error, fmt::format("mail_program {}: {}", program, why)};
}

std::string text_of(const core::Letter& letter) {
  return fmt::format(
      "To: {}\nSubject: {}\nAuto-Submitted: auto-generated\nMIME-Version: 1.0\n"
      "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n{}",
      fmt::join(letter.to, ", "), letter.subject, letter.body);
}

// A pair of sockets instead of a pipe: writing to one whose reader has gone raises no signal.
struct Ends {
  int ends[2] = {-1, -1};
  ~Ends() {
    close(0);
    close(1);
  }
  void close(int end) {
    if (ends[end] >= 0) ::close(std::exchange(ends[end], -1));
  }
};

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

Result<pid_t> start_program(const std::string& program, const core::Letter& letter, int input) {
  std::vector<std::string> command{program, "-i", "--"};
  command.insert(command.end(), letter.to.begin(), letter.to.end());
  // What goes wrong in it with a user's addresses and names goes wrong with the user's rights.
  auto words = ::geteuid() == 0
                   ? words_as_user(letter.uid, Privileges::may_be_gained, std::move(command))
                   : Result<std::vector<std::string>>(std::move(command));
  if (!words) return tl::unexpected(broken(program, words.error().message));
  auto pid = start_words(std::move(*words), input, OwnSession::no);
  if (!pid) return tl::unexpected(broken(program, pid.error().message));
  return pid;
}

Result<void> wait_for_end(const std::string& program, pid_t pid) {
  const auto until = Clock::now() + kMostMailTime;
  int status = 0;
  while (true) {
    const pid_t done = ::waitpid(pid, &status, WNOHANG);
    if (done == pid) break;
    if (done < 0 && errno != EINTR) return tl::unexpected(broken(program, std::strerror(errno)));
    if (Clock::now() > until) {
      ::kill(pid, SIGKILL);
      while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
      }
      return tl::unexpected(broken(program, fmt::format("took over {} s", kMostMailTime.count())));
    }
    ::poll(nullptr, 0, static_cast<int>(kLookForEnd.count()));
  }
  if (const auto failed = failed_ending(status)) return tl::unexpected(broken(program, *failed));
  return {};
}

}  // namespace

Result<void> send_letter(const std::string& program, const core::Letter& letter) {
  Ends pair;
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.ends) != 0)
    return tl::unexpected(broken(program, std::strerror(errno)));
  const auto pid = start_program(program, letter, pair.ends[0]);
  if (!pid) return tl::unexpected(pid.error());
  pair.close(0);
  const bool written = write_all(pair.ends[1], text_of(letter));
  pair.close(1);
  if (auto ended = wait_for_end(program, *pid); !ended) return ended;
  if (!written) return tl::unexpected(broken(program, "did not read the letter"));
  return {};
}

Mailer::Mailer(std::string program, Note note)
    : program_(std::move(program)), note_(std::move(note)), thread_([this] { run(); }) {}

Mailer::~Mailer() {
  {
    std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Mailer::send(std::vector<core::Letter> letters) {
  std::size_t dropped = 0;
  {
    std::lock_guard guard(mutex_);
    for (core::Letter& letter : letters)
      if (waiting_.size() < kMostLetters)
        waiting_.push_back(std::move(letter));
      else
        ++dropped;
  }
  wake_.notify_one();
  if (dropped > 0)
    note_(fmt::format("mail: {} letters dropped, as {} wait already", dropped, kMostLetters));
}

void Mailer::run() {
  while (true) {
    core::Letter letter;
    {
      std::unique_lock guard(mutex_);
      wake_.wait(guard, [&] { return stopping_ || !waiting_.empty(); });
      if (stopping_) return;
      letter = std::move(waiting_.front());
      waiting_.pop_front();
    }
    if (auto sent = send_letter(program_, letter); !sent)
      note_(fmt::format("mail to {}: {}", fmt::join(letter.to, ", "), sent.error().message));
  }
}

}  // namespace gantry::ctld
