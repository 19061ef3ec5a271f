// Hands letters to the site's sendmail from a thread of its own. Letters of one user are sent one
// after the other, letters of different users at the same time. A letter that the program does not
// accept, or for which there is no room, is reported and dropped.
//
// The program is called as `PROGRAM -i -- ADDRESS...` by the user whom the letter is about (if the
// controller is not root: by the controller's own user). The letter is its standard input, and its
// output is discarded. It is killed after a minute.
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

inline constexpr std::size_t kMostLetters = 10'000;       // letters that wait for the program
inline constexpr std::size_t kMostLettersOfUser = 1'000;  // of these, letters of one user
// Programs that run at a time, each for another user.
inline constexpr std::size_t kMostMailPrograms = 8;

class Mailer {
 public:
  using Note = std::function<void(std::string)>;  // called on the mailer's thread

  Mailer(std::string program, Note note);
  // Letters that wait are dropped. Programs that have their letter already continue by themselves.
  ~Mailer();
  Mailer(const Mailer&) = delete;
  Mailer& operator=(const Mailer&) = delete;

  void send(std::vector<core::Letter> letters);

 private:
  struct Running;
  void run();
  // Takes the next letter of a user for whom no program is running.
  std::optional<core::Letter> take(const std::vector<Running>& running);

  const std::string program_;
  const Note note_;
  std::mutex mutex_;  // guards everything below
  UserQueue<core::Letter> waiting_{kMostLetters, kMostLettersOfUser};
  bool stopping_ = false;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace gantry::ctld
