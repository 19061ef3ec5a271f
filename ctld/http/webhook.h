// Sends the lines of a file (usage events) to a URL, in order, each at least once. A batch is sent
// again until it is answered with 2xx. The position is stored in a file, so that sending continues
// there after a restart. It runs on a thread of its own; pauses grow while nobody answers.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "common/result.h"

namespace gantry::http {

// Octets in one POST; only a single long line may exceed this.
inline constexpr std::size_t kMostBatch = 256 * 1024;

struct Url {
  std::string host;
  std::uint16_t port = 80;
  std::string path;  // "/usage"
};
// Reads http://HOST[:PORT][/PATH]. https is refused with a hint: put a proxy in between.
Result<Url> parse_url(const std::string& text);

class Webhook {
 public:
  using Note = std::function<void(std::string)>;  // called on the webhook's thread

  // `lines` is the file that is sent; `mark` is the file that stores how far it was delivered.
  Webhook(Url url, std::string lines, std::string mark, Note note);
  ~Webhook();
  Webhook(const Webhook&) = delete;
  Webhook& operator=(const Webhook&) = delete;

  void wake();  // tells the thread that there are new lines

 private:
  void run();
  // Sends one batch. Returns the number of octets that were accepted; 0 = nothing to send; an error
  // = not delivered.
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
