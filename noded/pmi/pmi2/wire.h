// What tasks say over PMI_FD, and what they hear, in the two ways that MPI libraries have of it:
//
//   PMI-1   cmd=put kvsname=7.0 key=a value=b\n            answered in the same way
//   PMI-2   25    cmd=kvs-put;key=a;value=b;              six characters of length, then that much
//
// Both begin with a line of PMI-1, cmd=init, which says the version. In a value of PMI-2 a
// semicolon is written twice; one of PMI-1 has no space. As MPICH's src/pmi and Slurm's mpi/pmi2
// have them. No library but the standard one, as of what runs beside tasks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::pmi2 {

inline constexpr std::size_t kMaxCommand = 64 << 10;  // bytes; a client's own limit is the same
inline constexpr std::size_t kMaxName = 256;          // of a key-value space
inline constexpr std::size_t kMaxKey = 64;
inline constexpr std::size_t kMaxValue = 1024;

enum class Version : std::uint8_t { none, v1, v2 };  // none: before cmd=init

struct Command {
  std::string name;
  std::vector<std::pair<std::string, std::string>> values;
  [[nodiscard]] std::optional<std::string_view> find(std::string_view key) const;
};

enum class Taken : std::uint8_t { command, more, malformed };

// The first command of `in`, from `at` on, which moves on.
Taken take(Version version, std::string_view in, std::size_t& at, Command& out);

class Reply {
 public:
  Reply(Version version, std::string_view name);
  Reply& add(std::string_view key, std::string_view value);
  Reply& add(std::string_view key, std::int64_t value);
  // Of what did not go well; 0 = it did.
  Reply& result(int rc, std::string_view why = "");
  [[nodiscard]] std::string bytes() const;

 private:
  Version version_;
  std::string text_;
};

// "(vector,(FIRST NODE,NODES,TASKS ON EACH),...)": which ranks share a node, in the order of ranks.
std::string process_mapping(const std::vector<std::uint32_t>& tasks);

// "1 bad\nline" as something that a message can show.
std::string shown(std::string_view bytes);

}  // namespace gantry::pmi2
