// The messages of tasks and their server over PMI_FD, in the two forms that MPI libraries use:
//
//   PMI-1   cmd=put kvsname=7.0 key=a value=b\n            answered in the same way
//   PMI-2   25    cmd=kvs-put;key=a;value=b;              six characters for the length, then bytes
//
// Both begin with a line of PMI-1, cmd=init, which names the version. In a value of PMI-2 a
// semicolon is written twice; a value of PMI-1 has no space. The forms are those of MPICH's src/pmi
// and Slurm's mpi/pmi2. Only the standard library is used, as in every program that runs beside
// tasks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::pmi2 {

inline constexpr std::size_t kMaxCommand = 64 << 10;  // bytes; a client's own limit is the same
inline constexpr std::size_t kMaxName = 256;          // bytes of the name of a key-value space
inline constexpr std::size_t kMaxKey = 64;
inline constexpr std::size_t kMaxValue = 1024;

enum class Version : std::uint8_t { none, v1, v2 };  // none: before cmd=init

struct Command {
  std::string name;
  std::vector<std::pair<std::string, std::string>> values;
  [[nodiscard]] std::optional<std::string_view> find(std::string_view key) const;
};

enum class Taken : std::uint8_t { command, more, malformed };

// Takes the first command of `in` from `at` on, and moves `at` past it.
Taken take(Version version, std::string_view in, std::size_t& at, Command& out);

class Reply {
 public:
  Reply(Version version, std::string_view name);
  Reply& add(std::string_view key, std::string_view value);
  Reply& add(std::string_view key, std::int64_t value) { return add(key, std::to_string(value)); }
  // Adds the result: 0 = success, otherwise an error and why.
  Reply& result(int rc, std::string_view why = "");
  [[nodiscard]] std::string bytes() const;

 private:
  Version version_;
  std::string text_;
};

// "(vector,(FIRST NODE,NODES,TASKS ON EACH),...)": which ranks are on the same node, in the order
// of ranks.
std::string process_mapping(const std::vector<std::uint32_t>& tasks);

// Makes bytes such as "1 bad\nline" printable for a message.
std::string shown(std::string_view bytes);

}  // namespace gantry::pmi2
