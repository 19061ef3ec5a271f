// More links of a job, by the site's own CNI plugins: programs that are given a namespace and make
// a link there (https://www.cni.dev/docs/spec/). The site's file names a list of them; they run
// one after the other, each with what the one before it has said, and in the opposite order when
// the job has ended.
//
// What they said is kept in a file for each attempt, written before the first of them runs, so what
// a daemon that was killed has begun is undone by the next one. Calls wait for the programs, each
// of them for kCniPatience at most.
#pragma once

#include <string>
#include <vector>

#include "common/proto/attempt.h"
#include "common/result.h"
#include "common/time/time.h"

namespace gantry::network {

inline constexpr Duration kCniPatience = seconds(30);
inline constexpr const char* kCniLink = "net1";  // of the job, beside eth0

class Cni {
 public:
  struct Options {
    std::string list;                  // path of the .conflist
    std::vector<std::string> plugins;  // directories in which the programs are
    std::string directory;             // for the files; made if it is not there
    std::string node;                  // is part of the names by which plugins know attempts
  };
  // Reads the list; the error says what is wrong with it, or which program is missing.
  static Result<Cni> open(Options options);

  // The attempt's namespace, a file, gets its links. If a plugin refuses, nothing is left, and the
  // error is what it said.
  Result<void> add(const proto::AttemptKey& key, const std::string& space);
  // May be called for an attempt that has none. The namespace may be gone.
  Result<void> remove(const proto::AttemptKey& key, const std::string& space);
  // Whether all is still as it was made.
  [[nodiscard]] Result<void> check(const proto::AttemptKey& key, const std::string& space) const;

  // The attempts that have a file, and the addresses of one as its plugins said them:
  // "10.1.0.7/24".
  [[nodiscard]] std::vector<proto::AttemptKey> attempts() const;
  [[nodiscard]] std::vector<std::string> addresses(const proto::AttemptKey& key) const;

 private:
  struct Plugin {
    std::string type, program;
    std::string config;  // its part of the list, as JSON
  };
  explicit Cni(Options options) : options_(std::move(options)) {}
  Result<std::string> run(const Plugin& plugin, const char* command, const proto::AttemptKey& key,
                          const std::string& space, const std::string& before) const;
  Result<void> remove_all(const proto::AttemptKey& key, const std::string& space,
                          const std::string& said) const;
  [[nodiscard]] std::string file_of(const proto::AttemptKey& key) const;
  [[nodiscard]] std::string said_of(const proto::AttemptKey& key) const;

  Options options_;
  std::string name_, version_;  // of the list
  std::vector<Plugin> plugins_;
  bool checks_ = true;  // the list is not older than CHECK, and does not switch it off
};

// Runs one program to its end: what it is to read, what it wrote, and a time after which it is
// killed. The call waits, so it belongs onto a thread of its own.
struct ProgramEnd {
  int status = 127;  // as a shell has it: 128 and the signal; 127: it could not be started
  bool in_time = true;
  std::string output, errors;  // 1 MiB of each at most
};

ProgramEnd run_program(const std::string& path, const std::vector<std::string>& env,
                       const std::string& input, Duration patience);

}  // namespace gantry::network
