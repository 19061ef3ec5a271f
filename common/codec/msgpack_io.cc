#include "common/codec/msgpack_io.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/assert.h"

namespace gantry::codec {
namespace {

template <class T>
T big_endian(T value) {
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
  return value;
}

// Writes a tag and what follows it; returns where it ends.
template <class T>
char* tagged(char* at, unsigned tag, T value) {
  *at++ = static_cast<char>(tag);
  value = big_endian(value);
  std::memcpy(at, &value, sizeof(T));
  return at + sizeof(T);
}

}  // namespace

void MsgWriter::grow(std::size_t count) {
  const std::size_t used = size();
  out_.resize(begun_ + used + std::max(count, used));
  if (base_ == first_) std::memcpy(out_.data() + begun_, first_, used);
  base_ = out_.data() + begun_;
  at_ = base_ + used;
  end_ = out_.data() + out_.size();
}

char* MsgWriter::put_long(char* at, std::uint64_t value) {
  if (value <= 0xff) return tagged(at, 0xcc, static_cast<std::uint8_t>(value));
  if (value <= 0xffff) return tagged(at, 0xcd, static_cast<std::uint16_t>(value));
  if (value <= 0xffffffff) return tagged(at, 0xce, static_cast<std::uint32_t>(value));
  return tagged(at, 0xcf, value);
}

char* MsgWriter::put_negative(char* at, std::int64_t value) {
  if (value >= -32) {
    *at = static_cast<char>(value);
    return at + 1;
  }
  if (value >= std::numeric_limits<std::int8_t>::min())
    return tagged(at, 0xd0, static_cast<std::uint8_t>(value));
  if (value >= std::numeric_limits<std::int16_t>::min())
    return tagged(at, 0xd1, static_cast<std::uint16_t>(value));
  if (value >= std::numeric_limits<std::int32_t>::min())
    return tagged(at, 0xd2, static_cast<std::uint32_t>(value));
  return tagged(at, 0xd3, static_cast<std::uint64_t>(value));
}

char* MsgWriter::put_long_string(char* at, std::size_t size) {
  if (size <= 0xff) return tagged(at, 0xd9, static_cast<std::uint8_t>(size));
  if (size <= 0xffff) return tagged(at, 0xda, static_cast<std::uint16_t>(size));
  return tagged(at, 0xdb, static_cast<std::uint32_t>(size));
}

char* MsgWriter::put_long_head(char* at, std::uint32_t size, unsigned wide) {
  if (size <= 0xffff) return tagged(at, wide, static_cast<std::uint16_t>(size));
  return tagged(at, wide + 1, size);
}

void MsgWriter::real(double value) {
  need(kLongest);
  at_ = tagged(at_, 0xcb, std::bit_cast<std::uint64_t>(value));
}

template <class T>
bool MsgReader::take(T& out) {
  if (static_cast<std::size_t>(end_ - at_) < sizeof(T)) return truncated();
  std::memcpy(&out, at_, sizeof(T));
  out = big_endian(out);
  at_ += sizeof(T);
  return true;
}

bool MsgReader::take_bytes(std::size_t count, std::string_view& out) {
  if (static_cast<std::size_t>(end_ - at_) < count) return truncated();
  out = {at_, count};
  at_ += count;
  return true;
}

bool MsgReader::boolean(bool& out) {
  std::uint8_t tag = 0;
  if (!take(tag)) return false;
  if (tag != 0xc2 && tag != 0xc3) return error_.fail("expected true or false");
  out = tag == 0xc3;
  return true;
}

bool MsgReader::integer(Integer& out, const char* expected) {
  std::uint8_t tag = 0;
  if (!take(tag)) return false;
  if (tag < 0x80) {
    out = {tag, false};
    return true;
  }
  if (tag >= 0xe0) {
    out = {static_cast<std::uint64_t>(static_cast<std::int8_t>(tag)), true};
    return true;
  }
  const auto wide = [&](auto raw) {
    if (!take(raw)) return false;
    out = {static_cast<std::uint64_t>(raw), false};
    return true;
  };
  const auto wide_signed = [&](auto raw, auto as) {
    if (!take(raw)) return false;
    as = static_cast<decltype(as)>(raw);
    out = {static_cast<std::uint64_t>(as), as < 0};
    return true;
  };
  switch (tag) {
    case 0xcc: return wide(std::uint8_t{});
    case 0xcd: return wide(std::uint16_t{});
    case 0xce: return wide(std::uint32_t{});
    case 0xcf: return wide(std::uint64_t{});
    case 0xd0: return wide_signed(std::uint8_t{}, std::int8_t{});
    case 0xd1: return wide_signed(std::uint16_t{}, std::int16_t{});
    case 0xd2: return wide_signed(std::uint32_t{}, std::int32_t{});
    case 0xd3: return wide_signed(std::uint64_t{}, std::int64_t{});
    default: return error_.fail(expected);
  }
}

bool MsgReader::uint(std::uint64_t& out, std::uint64_t max) {
  Integer raw;
  if (!integer(raw, "expected an unsigned integer")) return false;
  if (raw.negative) return error_.fail("expected an unsigned integer");
  if (raw.value > max) return error_.fail(fmt::format("{} is more than {}", raw.value, max));
  out = raw.value;
  return true;
}

bool MsgReader::sint(std::int64_t& out, std::int64_t min, std::int64_t max) {
  Integer raw;
  if (!integer(raw, "expected an integer")) return false;
  if (!raw.negative && raw.value > static_cast<std::uint64_t>(max))
    return error_.fail(fmt::format("{} is more than {}", raw.value, max));
  const auto value = static_cast<std::int64_t>(raw.value);
  if (raw.negative && value < min)
    return error_.fail(fmt::format("{} is less than {}", value, min));
  out = value;
  return true;
}

bool MsgReader::real(double& out) {
  if (at_ == end_) return truncated();
  const auto tag = static_cast<std::uint8_t>(*at_);
  if (tag == 0xcb) {
    std::uint64_t bits = 0;
    ++at_;
    if (!take(bits)) return false;
    out = std::bit_cast<double>(bits);
  } else if (tag == 0xca) {
    std::uint32_t bits = 0;
    ++at_;
    if (!take(bits)) return false;
    out = std::bit_cast<float>(bits);
  } else {
    Integer raw;
    if (!integer(raw, "expected a number")) return false;
    out = raw.negative ? static_cast<double>(static_cast<std::int64_t>(raw.value))
                       : static_cast<double>(raw.value);
  }
  return std::isfinite(out) || error_.fail("expected a finite number");
}

bool MsgReader::string(std::string_view& out) {
  std::uint8_t tag = 0;
  if (!take(tag)) return false;
  if (tag >= 0xa0 && tag < 0xc0) return take_bytes(tag & 0x1fu, out);
  const auto sized = [&](auto size) { return take(size) && take_bytes(size, out); };
  switch (tag) {
    case 0xc4:
    case 0xd9: return sized(std::uint8_t{});
    case 0xc5:
    case 0xda: return sized(std::uint16_t{});
    case 0xc6:
    case 0xdb: return sized(std::uint32_t{});
    default: return error_.fail("expected a string");
  }
}

bool MsgReader::size_of(unsigned tag, bool is_map, std::uint32_t& size) {
  const unsigned fix = is_map ? 0x80 : 0x90;
  const unsigned wide = is_map ? 0xde : 0xdc;
  if ((tag & 0xf0) == fix) {
    size = tag & 0x0f;
  } else if (tag == wide) {
    std::uint16_t n = 0;
    if (!take(n)) return false;
    size = n;
  } else if (tag == wide + 1) {
    if (!take(size)) return false;
  } else {
    return error_.fail(is_map ? "expected a map" : "expected a list");
  }
  if (size > kMaxItems) return error_.fail(fmt::format("more than {} elements", kMaxItems));
  const std::size_t least = std::size_t{size} * (is_map ? 2 : 1);
  return least <= static_cast<std::size_t>(end_ - at_) || truncated();
}

bool MsgReader::array(std::uint32_t& size) {
  std::uint8_t tag = 0;
  return take(tag) && size_of(tag, false, size);
}

bool MsgReader::map(std::uint32_t& size) {
  std::uint8_t tag = 0;
  return take(tag) && size_of(tag, true, size);
}

bool MsgReader::field_number(std::uint64_t& out) {
  Integer raw;
  if (!integer(raw, "expected a field number")) return false;
  if (raw.negative) return error_.fail("expected a field number");
  out = raw.value;
  return true;
}

bool MsgReader::enter() {
  if (++depth_ > kMaxDepth) return error_.fail(fmt::format("nested deeper than {}", kMaxDepth));
  return true;
}

bool MsgReader::charge(std::size_t bytes) {
  decoded_ += bytes;
  return decoded_ <= kMaxDecodedBytes || error_.fail("too many elements");
}

bool MsgReader::skip_nil() {
  if (at_ == end_ || static_cast<std::uint8_t>(*at_) != 0xc0) return false;
  ++at_;
  return true;
}

bool MsgReader::skip() {
  if (at_ == end_) return truncated();
  const auto tag = static_cast<std::uint8_t>(*at_);
  std::string_view ignored;
  const auto fixed = [&](std::size_t count) {
    ++at_;
    return take_bytes(count, ignored);
  };
  const auto extension = [&](auto size) {
    ++at_;
    return take(size) && take_bytes(std::size_t{size} + 1, ignored);
  };
  if ((tag & 0xe0) == 0xa0 || (tag >= 0xc4 && tag <= 0xc6) || (tag >= 0xd9 && tag <= 0xdb))
    return string(ignored);
  const bool is_map = (tag & 0xf0) == 0x80 || tag == 0xde || tag == 0xdf;
  if (is_map || (tag & 0xf0) == 0x90 || tag == 0xdc || tag == 0xdd) {
    std::uint32_t size = 0;
    if (!(is_map ? map(size) : array(size)) || !enter()) return false;
    for (std::uint64_t left = std::uint64_t{size} * (is_map ? 2 : 1); left > 0; --left)
      if (!skip()) return false;
    leave();
    return true;
  }
  switch (tag) {
    case 0xc1: return error_.fail("a byte that msgpack does not use");
    case 0xc7: return extension(std::uint8_t{});
    case 0xc8: return extension(std::uint16_t{});
    case 0xc9: return extension(std::uint32_t{});
    case 0xca:
    case 0xce:
    case 0xd2: return fixed(4);
    case 0xcb:
    case 0xcf:
    case 0xd3: return fixed(8);
    case 0xcc:
    case 0xd0: return fixed(1);
    case 0xcd:
    case 0xd1: return fixed(2);
    case 0xd4: return fixed(2);
    case 0xd5: return fixed(3);
    case 0xd6: return fixed(5);
    case 0xd7: return fixed(9);
    case 0xd8: return fixed(17);
    default: return fixed(0);  // fixints, nil, booleans
  }
}

}  // namespace gantry::codec
