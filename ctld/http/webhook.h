// Sends a file of lines (usage events) to a URL, in order, each at least once: a batch is sent
// until it is answered with 2xx, and how far that went is kept in a file, from which it goes on
// after a restart. On a thread of its own; pauses grow while nobody answers.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "common/result.h"

namespace gantry::http {

inline constexpr std::size_t kMostBatch = 256 * 1024;  // octets in one POST, but for one long line

struct Url {
  std::string host;
  std::uint16_t port = 80;
  std::string path;  // "/usage"
};
// http://HOST[:PORT][/PATH]. https is refused by name: put a proxy in between.
Result<Url> parse_url(const std::string& text);

class Webhook {
 public:
  using Note = std::function<void(std::string)>;  // from its thread

  // `lines`: what is sent; `mark`: where it has got to.
  Webhook(Url url, std::string lines, std::string mark, Note note);
  ~Webhook();
  Webhook(const Webhook&) = delete;
  Webhook& operator=(const Webhook&) = delete;

  void wake();  // there is more

 private:
  void run();
  // One batch: the octets that were taken, 0 = there is nothing, an error = not delivered.
  Result<std::uint64_t> send_some(std::uint64_t from);
  Result<void> post(const std::string& body) const;

  const Url url_;
  const std::string lines_, mark_;
  const Note note_;
  std::mutex mutex_;  // guards more_
  bool more_ = true;
  std::atomic<bool> stopping_{false};
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace gantry::http
