#include "ctld/mailer.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
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

// Makes a file in memory with the letter, so that no thread waits for a program that reads slowly.
// Returns -1 with errno on failure.
int file_of(const core::Letter& letter) {
  const std::string text = text_of(letter);
  const int fd = ::memfd_create("letter", MFD_CLOEXEC);
  std::string_view left = text;
  while (fd >= 0 && !left.empty()) {
    const ssize_t n = ::write(fd, left.data(), left.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    left.remove_prefix(static_cast<std::size_t>(n));
  }
  if (fd >= 0 && left.empty() && ::lseek(fd, 0, SEEK_SET) == 0) return fd;
  if (fd >= 0) ::close(fd);
  return -1;
}

Result<pid_t> start_program(const std::string& program, const core::Letter& letter, int input) {
  std::vector<std::string> command{program, "-i", "--"};
  command.insert(command.end(), letter.to.begin(), letter.to.end());
  // The program gets addresses and names that the user has chosen. It runs with the user's rights,
  // so bugs in it can do no more harm than the user could.
  auto words = ::geteuid() == 0
                   ? words_as_user(letter.uid, Privileges::may_be_gained, std::move(command))
                   : Result<std::vector<std::string>>(std::move(command));
  if (!words) return tl::unexpected(broken(program, words.error().message));
  auto pid = start_words(std::move(*words), input, OwnSession::no);
  if (!pid) return tl::unexpected(broken(program, pid.error().message));
  return pid;
}

Result<pid_t> start_letter(const std::string& program, const core::Letter& letter) {
  const int input = file_of(letter);
  if (input < 0) return tl::unexpected(broken(program, std::strerror(errno)));
  auto pid = start_program(program, letter, input);
  ::close(input);
  return pid;
}

}  // namespace

struct Mailer::Running {
  core::Letter letter;
  pid_t pid = 0;
  Clock::time_point until;
  bool killed = false;
};

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
      if (!waiting_.push(std::move(letter))) ++dropped;
  }
  wake_.notify_one();
  if (dropped > 0)
    note_(fmt::format("mail: {} letters dropped, as {}, or {} of one user, wait already", dropped,
                      kMostLetters, kMostLettersOfUser));
}

std::optional<core::Letter> Mailer::take(const std::vector<Running>& running) {
  if (running.size() >= kMostMailPrograms) return std::nullopt;
  return waiting_.take([&](const core::Letter& letter) {
    return std::none_of(running.begin(), running.end(),
                        [&](const Running& r) { return r.letter.uid == letter.uid; });
  });
}

void Mailer::run() {
  std::vector<Running> running;
  const auto note = [this](const core::Letter& letter, const std::string& why) {
    note_(fmt::format("mail to {}: {}", fmt::join(letter.to, ", "), why));
  };
  while (true) {
    std::optional<core::Letter> next;
    {
      std::unique_lock guard(mutex_);
      if (running.empty())
        wake_.wait(guard, [&] { return stopping_ || !waiting_.empty(); });
      else
        wake_.wait_for(guard, kLookForEnd);
      if (stopping_) return;
      next = take(running);
    }
    if (next) {
      if (auto pid = start_letter(program_, *next); pid)
        running.push_back({std::move(*next), *pid, Clock::now() + kMostMailTime});
      else
        note(*next, pid.error().message);
    }
    std::erase_if(running, [&](Running& one) {
      int status = 0;
      const pid_t done = ::waitpid(one.pid, &status, WNOHANG);
      if (done == 0 && Clock::now() > one.until && !std::exchange(one.killed, true)) {
        ::kill(one.pid, SIGKILL);
        note(one.letter,
             broken(program_, fmt::format("took over {} s", kMostMailTime.count())).message);
      }
      if (done == 0 || (done < 0 && errno == EINTR)) return false;
      const auto why =
          done < 0 ? std::optional(std::string(std::strerror(errno))) : failed_ending(status);
      if (why && !one.killed) note(one.letter, broken(program_, *why).message);
      return true;
    });
  }
}

}  // namespace gantry::ctld
