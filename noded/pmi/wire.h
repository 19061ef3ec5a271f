// The messages between gantry-pmix or gantry-pmi2 (noded/pmi/pmi2) and its shim over descriptor 4,
// a stream socket:
//
//   u32 size of the bytes, u8 word, u32 number, bytes      (in the machine's byte order)
//
// Both ends are from the same build. Only the standard library is used, because the servers link no
// library of Gantry.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace gantry::pmix {

inline constexpr int kSocket = 4;
inline constexpr int kFirstTask = 6;                   // first of the task sockets of gantry-pmi2
inline constexpr std::uint32_t kMaxBytes = 64u << 20;  // bytes of one frame
// Bytes of one frame to or from another node's server.
inline constexpr std::uint32_t kMaxPeerBytes = 60 * 1024;
inline constexpr std::uint32_t kMaxSaidBytes = 1u << 20;  // bytes of one frame to the shim
inline constexpr std::uint32_t kAllOthers = 0xffffffff;   // as proto::kAllOtherNodes

enum class Word : std::uint8_t {
  environment = 1,  // to the shim: number = task on this node; variables, each as "NAME=value\0"
  ready = 2,        // to the shim: tasks may start
  peer = 3,         // both ways: number = the step's node to which or from which it is sent
  abort = 4,        // to the shim: number = rank; an int32 status, then the reason
  failed = 5,       // to the shim: why the server cannot serve; then it ends
  fault = 6,        // to the shim: number = the failed rank; why the step cannot continue
};

struct Frame {
  Word word{};
  std::uint32_t number = 0;
  std::string bytes;
};

inline void append_number(std::string& out, std::uint32_t value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

inline void append(std::string& out, Word word, std::uint32_t number, std::string_view bytes) {
  append_number(out, static_cast<std::uint32_t>(bytes.size()));
  out += static_cast<char>(word);
  append_number(out, number);
  out += bytes;
}

enum class Taken : std::uint8_t { frame, more, malformed };

// Takes the first frame of `in` from `at` on, and moves `at` past it. Error malformed: it has more
// bytes than `most`.
inline Taken take(std::string_view in, std::size_t& at, Frame& out,
                  std::uint32_t most = kMaxBytes) {
  constexpr std::size_t kHead = 9;
  if (in.size() - at < kHead) return Taken::more;
  std::uint32_t size = 0;
  std::memcpy(&size, in.data() + at, sizeof size);
  if (size > most) return Taken::malformed;
  if (in.size() - at < kHead + size) return Taken::more;
  out.word = static_cast<Word>(in[at + 4]);
  std::memcpy(&out.number, in.data() + at + 5, sizeof out.number);
  out.bytes = in.substr(at + kHead, size);
  at += kHead + size;
  return Taken::frame;
}

}  // namespace gantry::pmix
