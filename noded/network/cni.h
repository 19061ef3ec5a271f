// Further links of a job, made by the site's CNI plugins: programs that get a namespace and make a
// link there (https://www.cni.dev/docs/spec/). The site's file lists them; they run one after the
// other, each with the result of the previous one, and in the opposite order when the job has
// ended.
//
// Their results are kept in a file for each attempt, written before the first of them runs, so that
// the next daemon can undo what a killed one has begun. Calls wait for each program, at most
// kCniPatience.
#pragma once

#include <string>
#include <vector>

#include "common/proto/attempt.h"
#include "common/result.h"
#include "common/time/time.h"

namespace gantry::network {

inline constexpr Duration kCniPatience = seconds(30);
inline constexpr const char* kCniLink = "net1";  // names of the job's links, besides eth0

class Cni {
 public:
  struct Options {
    std::string list;                  // path of the .conflist file
    std::vector<std::string> plugins;  // directories in which the programs are
    std::string directory;             // directory for these files; made if it does not exist
    std::string node;                  // part of the names by which plugins know attempts
  };
  // Reads the list; the error tells what is wrong with it, or which program is missing.
  static Result<Cni> open(Options options);

  // Makes links in the attempt's namespace, which is a file. If a plugin refuses, nothing is left,
  // and the error is its text.
  Result<void> add(const proto::AttemptKey& key, const std::string& space);
  // May be called for an attempt without links. The namespace may be gone.
  Result<void> remove(const proto::AttemptKey& key, const std::string& space);
  // Whether all links are still as they were made.
  [[nodiscard]] Result<void> check(const proto::AttemptKey& key, const std::string& space) const;

  // The attempts that have a file, and the addresses of one as its plugins returned them:
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
  bool checks_ = true;  // the list's version has CHECK, and does not disable it
};

// Runs one program to its end, with its input, its output, and a time after which it is killed. The
// call waits, so it must run on a separate thread.
struct ProgramEnd {
  int status = 127;  // as in a shell: 128 plus the signal; 127: it could not be started
  bool in_time = true;
  std::string output, errors;  // at most 1 MiB each
};

ProgramEnd run_program(const std::string& path, const std::vector<std::string>& env,
                       const std::string& input, Duration patience);

}  // namespace gantry::network
