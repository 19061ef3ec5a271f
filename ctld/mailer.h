// Hands letters to the site's sendmail, one after the other, on a thread of its own. A letter that
// the program does not take, or for which there is no room, is noted and dropped.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/result.h"
#include "ctld/core/letter.h"

namespace gantry::ctld {

inline constexpr std::size_t kMostLetters = 10'000;  // that wait for the program

// `PROGRAM -i -- ADDRESS...` as the user whom the letter is about (a controller that is not root:
// as itself), with the letter on its standard input, its own output thrown away. An error: it could
// not be started, ended otherwise than with 0, or took longer than a minute.
Result<void> send_letter(const std::string& program, const core::Letter& letter);

class Mailer {
 public:
  using Note = std::function<void(std::string)>;  // from its thread

  Mailer(std::string program, Note note);
  ~Mailer();  // waits for the letter that is under way; those behind it are dropped
  Mailer(const Mailer&) = delete;
  Mailer& operator=(const Mailer&) = delete;

  void send(std::vector<core::Letter> letters);

 private:
  void run();

  const std::string program_;
  const Note note_;
  std::mutex mutex_;  // guards what follows
  std::deque<core::Letter> waiting_;
  bool stopping_ = false;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace gantry::ctld
