// Hands letters to the site's sendmail, from a thread of its own: those of one user one after the
// other, those of several users at once. A letter that the program does not take, or for which
// there is no room, is noted and dropped.
//
// The program is `PROGRAM -i -- ADDRESS...` as the user whom the letter is about (a controller that
// is not root: as itself), with the letter on its standard input, its own output thrown away. It is
// killed after a minute.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ctld/core/letter.h"
#include "ctld/user_queue.h"

namespace gantry::ctld {

inline constexpr std::size_t kMostLetters = 10'000;       // that wait for the program
inline constexpr std::size_t kMostLettersOfUser = 1'000;  // of them
inline constexpr std::size_t kMostMailPrograms = 8;  // that run at a time, each of another user

class Mailer {
 public:
  using Note = std::function<void(std::string)>;  // from its thread

  Mailer(std::string program, Note note);
  // Letters that wait are dropped; programs that have theirs go on by themselves.
  ~Mailer();
  Mailer(const Mailer&) = delete;
  Mailer& operator=(const Mailer&) = delete;

  void send(std::vector<core::Letter> letters);

 private:
  struct Running;
  void run();
  // Takes the next letter of a user who has no program running.
  std::optional<core::Letter> take(const std::vector<Running>& running);

  const std::string program_;
  const Note note_;
  std::mutex mutex_;  // guards what follows
  UserQueue<core::Letter> waiting_{kMostLetters, kMostLettersOfUser};
  bool stopping_ = false;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace gantry::ctld
