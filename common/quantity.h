// Quantities whose unit is their type, so that different scales of one thing cannot be mixed: GPUs
// and thousandths of a GPU, cores and thousandths of a core, bytes and MiB are six types.
//
// - A number becomes a quantity only where somebody writes the unit (`Gpus{n}`), and a quantity
//   becomes a number only by value().
// - Quantities of one unit can be added, subtracted and compared. Nothing else compiles: no sum of
//   cores and thousandths of cores, no product of thousandths and 1,000, no assignment of a plain
//   number (tests/unit/test_quantity.cc).
// - A quantity is multiplied only by Times: a number of nodes, tasks or slices.
// - Only named functions convert from one scale to another: thousandths_of(Gpus{2}).
// - A wider representation accepts a narrower one without a cast; narrow<>() asserts that the value
//   fits. A representation of less than 32 bits is for storing; sums are made in a wider one.
//
// On the wire, in the store and in JSON a quantity is its number, as that integer type is.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>
#include <utility>

#include "common/assert.h"

namespace gantry {

template <class Unit, std::integral Rep>
class Quantity;
using Times =
    Quantity<struct TimesUnit, std::int64_t>;  // a number of nodes, tasks, or slices of a kind

template <class Unit, std::integral Rep = std::int64_t>
class Quantity {
 public:
  using rep = Rep;
  using unit = Unit;
  template <std::integral R>
  using in = Quantity<Unit, R>;

  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep value) : value_(value) {}
  template <std::integral R>
  requires(!std::same_as<R, Rep> && std::in_range<Rep>(std::numeric_limits<R>::min()) &&
           std::in_range<Rep>(
               std::numeric_limits<R>::max())) constexpr Quantity(Quantity<Unit, R> narrower)
      : value_(narrower.value()) {}  // NOLINT

  [[nodiscard]] constexpr Rep value() const { return value_; }
  template <std::integral R>
  [[nodiscard]] constexpr Quantity<Unit, R> narrow() const {
    GANTRY_ASSERT(std::in_range<R>(value_), "a quantity fits where it is stored");
    return Quantity<Unit, R>(static_cast<R>(value_));
  }

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) requires(sizeof(Rep) >= 4) {
    return Quantity(a.value_ + b.value_);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) requires(sizeof(Rep) >= 4) {
    return Quantity(a.value_ - b.value_);
  }
  constexpr Quantity& operator+=(Quantity o) requires(sizeof(Rep) >= 4) {
    value_ += o.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) requires(sizeof(Rep) >= 4) {
    value_ -= o.value_;
    return *this;
  }
  friend constexpr Quantity<Unit, std::int64_t> operator*(Quantity q,
                                                          Times times) requires(sizeof(Rep) >= 4) {
    return Quantity<Unit, std::int64_t>(static_cast<std::int64_t>(q.value_) * times.value());
  }

 private:
  Rep value_ = 0;
};

// Thousandths of a plain number: weights, factors and Kubernetes' quantities are stored so.
using Thousandths = Quantity<struct ThousandthUnit>;
constexpr Thousandths thousandths_of(Times number) {
  return Thousandths{number.value() * 1000};
}
constexpr Times times_in(Thousandths amount) {  // rounded down
  return Times{amount.value() / 1000};
}

// ---- cores

using Cores = Quantity<struct CoreUnit>;
using CoreThousandths = Quantity<struct CoreThousandthUnit>;
constexpr CoreThousandths thousandths_of(Cores cores) {
  return CoreThousandths{cores.value() * 1000};
}
constexpr Cores cores_in(CoreThousandths amount) {  // rounded down
  return Cores{amount.value() / 1000};
}
constexpr Cores cores_for(CoreThousandths amount) {  // rounded up
  return Cores{(amount.value() + 999) / 1000};
}

// ---- GPUs, compute slices of GPUs in MIG mode, and parts of either

using Gpus = Quantity<struct GpuUnit>;
using GpuThousandths = Quantity<struct GpuThousandthUnit>;  // quota and charges count in this unit
constexpr GpuThousandths thousandths_of(Gpus gpus) {
  return GpuThousandths{gpus.value() * 1000};
}
inline constexpr GpuThousandths kOneGpu{1000};

using ComputeSlices = Quantity<struct ComputeSliceUnit>;
using SliceThousandths = Quantity<struct SliceThousandthUnit>;  // thousandths of compute slices
constexpr SliceThousandths thousandths_of(ComputeSlices slices) {
  return SliceThousandths{slices.value() * 1000};
}
// The smallest part of a GPU for which compute slices can count: a slice is at least one of eight.
constexpr GpuThousandths least_weight(SliceThousandths slices) {
  return GpuThousandths{slices.value() / 8};
}

// Thousandths of one device, which is a GPU or a slice of a GPU: 0 to 1000.
using DevicePart = Quantity<struct DevicePartUnit>;
inline constexpr DevicePart kWholeDevice{1000};
// Converts a part of a GPU that is not in MIG mode: there, a part of the device is the same part of
// a GPU.
constexpr GpuThousandths thousandths_of_gpu(DevicePart part) {
  return GpuThousandths{part.value()};
}
constexpr DevicePart part_of_gpu(GpuThousandths amount) {
  return DevicePart{amount.value()};
}
// The weight of a part of a device, if the whole device has the weight `device`; rounded down.
constexpr GpuThousandths part_of(GpuThousandths device, DevicePart part) {
  return GpuThousandths{device.value() * part.value() / kWholeDevice.value()};
}
// The compute slices in a part of this many slices: `slices` x `part`.
constexpr SliceThousandths part_of(ComputeSlices slices, DevicePart part) {
  return SliceThousandths{slices.value() * part.value()};
}

// ---- memory and disk

using ByteCount = Quantity<struct ByteUnit>;
using Mebibytes = Quantity<struct MebibyteUnit>;
constexpr ByteCount bytes_of(Mebibytes amount) {
  return ByteCount{amount.value() << 20};
}
// A part of the device's memory, rounded down (by less than 1,001 bytes).
constexpr ByteCount part_of(ByteCount device, DevicePart part) {
  return ByteCount{device.value() / kWholeDevice.value() * part.value()};
}
constexpr Mebibytes mebibytes_in(ByteCount amount) {  // rounded down
  return Mebibytes{amount.value() >> 20};
}
constexpr Mebibytes mebibytes_for(ByteCount amount) {  // rounded up
  return Mebibytes{(amount.value() + (std::int64_t{1} << 20) - 1) >> 20};
}

// ---- rates, in powers of 1,000, as disks and networks are measured

using ByteRate = Quantity<struct ByteRateUnit>;          // bytes per second
using MegabyteRate = Quantity<struct MegabyteRateUnit>;  // 10^6 bytes per second
using BitRate = Quantity<struct BitRateUnit>;            // bits per second
using MegabitRate = Quantity<struct MegabitRateUnit>;    // 10^6 bits per second
constexpr MegabyteRate megabytes_for(ByteRate rate) {    // rounded up
  return MegabyteRate{(rate.value() + 999'999) / 1'000'000};
}
constexpr MegabitRate megabits_for(BitRate rate) {  // rounded up
  return MegabitRate{(rate.value() + 999'999) / 1'000'000};
}

}  // namespace gantry
