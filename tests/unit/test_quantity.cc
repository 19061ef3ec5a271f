// Units are types, so code that mixes two units does not compile. Each assertion below that forbids
// something stands for a mistake that was made, or could be made, with plain integers.
#include <doctest/doctest.h>

#include <concepts>

#include "common/quantity.h"
#include "common/resources/gpu.h"
#include "common/resources/resources.h"

using namespace gantry;

namespace {

template <class A, class B>
concept Adds = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept AddsTo = requires(A a, B b) {
  a += b;
};
template <class A, class B>
concept Multiplies = requires(A a, B b) {
  a* b;
};
template <class A, class B>
concept Compares = requires(A a, B b) {
  a < b;
}
|| requires(A a, B b) {
  a == b;
};
template <class A, class B>
concept TakesFrom = std::assignable_from<A&, B> || std::convertible_to<B, A>;
template <class A>
concept HasThousandths = requires(A a) {
  thousandths_of(a);
};
template <Resource R, class B>
concept Sets = requires(Resources r, B b) {
  r.set<R>(b);
};
template <Resource R, class B>
concept AddsRow = requires(Resources r, B b) {
  r.add<R>(b);
};

// True if the two types cannot be added, subtracted, compared or multiplied with each other. This
// holds for two units of the same resource, and for a quantity and a plain number.
template <class A, class B>
constexpr bool kApart = !Adds<A, B> && !Adds<B, A> && !AddsTo<A, B> && !AddsTo<B, A> &&
                        !Compares<A, B> && !Compares<B, A> && !TakesFrom<A, B> &&
                        !TakesFrom<B, A> && !Multiplies<A, B> && !Multiplies<B, A>;

static_assert(kApart<Cores, CoreThousandths>);
static_assert(kApart<Gpus, GpuThousandths>);
static_assert(kApart<ComputeSlices, SliceThousandths>);
static_assert(kApart<GpuThousandths, SliceThousandths>);
static_assert(kApart<GpuThousandths, CoreThousandths>);
static_assert(kApart<GpuThousandths, DevicePart>);
static_assert(kApart<SliceThousandths, DevicePart>);
static_assert(kApart<ByteCount, Mebibytes>);
static_assert(kApart<ByteCount, GpuThousandths>);
static_assert(kApart<GpuThousandths, std::int64_t>);
static_assert(kApart<SliceThousandths, int>);
static_assert(kApart<CoreThousandths, std::size_t>);
static_assert(kApart<ByteCount, std::int64_t>);
static_assert(kApart<GpuThousandths, double>);
// Shares and weights are apart too.
static_assert(!Adds<Times, Thousandths> && !Compares<Times, Thousandths>);

// A value in thousandths cannot be turned into thousandths again, by a multiplication or by the
// function.
static_assert(!Multiplies<SliceThousandths, decltype(kGpuUnit)>);
static_assert(!Multiplies<GpuThousandths, GpuThousandths>);
static_assert(!HasThousandths<GpuThousandths>);
static_assert(!HasThousandths<SliceThousandths>);
static_assert(!HasThousandths<CoreThousandths>);
static_assert(!HasThousandths<std::int64_t>);
static_assert(!HasThousandths<Thousandths>);
static_assert(HasThousandths<Gpus> && HasThousandths<Cores> && HasThousandths<ComputeSlices>);

// A past mistake in least_of() would have borrowed 375 GPUs: least[gpu] += d.slices * kGpuUnit / 8.
using Slices = SliceThousandths;  // This is the type of Demand::slices; see slices_test.cc.
static_assert(!Multiplies<Slices, decltype(kGpuUnit)>);
static_assert(!AddsRow<Resource::gpu, Slices>);
static_assert(!AddsRow<Resource::gpu, std::int64_t>);
static_assert(AddsRow<Resource::gpu, decltype(least_weight(Slices{}))>);
template <class R>
concept WritesByIndex = requires(R r) {
  r[Resource::gpu] = std::int64_t{1};
};
static_assert(!WritesByIndex<Resources>);

// A row of Resources takes only its own unit.
static_assert(Sets<Resource::cpu, CoreThousandths> && !Sets<Resource::cpu, Cores> &&
              !Sets<Resource::cpu, std::int64_t> && !Sets<Resource::cpu, GpuThousandths>);
static_assert(Sets<Resource::gpu, GpuThousandths> && !Sets<Resource::gpu, Gpus> &&
              !Sets<Resource::gpu, DevicePart>);
static_assert(Sets<Resource::memory, ByteCount> && !Sets<Resource::memory, Mebibytes>);

// Values of the same unit can be combined. A narrower representation goes into a wider one, but not
// the other way round.
static_assert(Adds<GpuThousandths, GpuThousandths> && Compares<Cores, Cores>);
static_assert(AddsTo<GpuThousandths, GpuThousandths::in<std::uint16_t>>);
static_assert(!TakesFrom<GpuThousandths::in<std::uint16_t>, GpuThousandths>);
static_assert(!TakesFrom<GpuThousandths::in<std::uint32_t>, GpuThousandths::in<std::int32_t>>);
static_assert(!Adds<GpuThousandths::in<std::uint16_t>, GpuThousandths::in<std::uint16_t>>);
static_assert(Multiplies<GpuThousandths, Times> && !Multiplies<GpuThousandths, int>);
static_assert(sizeof(GpuThousandths::in<std::uint16_t>) == 2 && sizeof(ByteCount) == 8);
static_assert(std::is_trivially_copyable_v<GpuThousandths>);

}  // namespace

TEST_CASE("functions convert one unit to another, and their names say how they round") {
  CHECK(thousandths_of(Gpus{2}) == GpuThousandths{2000});
  CHECK(thousandths_of(Cores{3}) == CoreThousandths{3000});
  CHECK(cores_in(CoreThousandths{1999}) == Cores{1});
  CHECK(cores_for(CoreThousandths{1001}) == Cores{2});
  CHECK(cores_for(CoreThousandths{1000}) == Cores{1});
  // Three slices of 1 of 7 weigh at least three eighths of a GPU.
  CHECK(least_weight(thousandths_of(ComputeSlices{1}) * Times{3}) == GpuThousandths{375});
  CHECK(part_of(GpuThousandths{464}, DevicePart{500}) == GpuThousandths{232});
  CHECK(part_of(ComputeSlices{3}, DevicePart{500}) == SliceThousandths{1500});
  CHECK(bytes_of(Mebibytes{3}) == ByteCount{3 << 20});
  CHECK(mebibytes_in(ByteCount{(2 << 20) - 1}) == Mebibytes{1});
  CHECK(mebibytes_for(ByteCount{(1 << 20) + 1}) == Mebibytes{2});
  CHECK(mebibytes_for(ByteCount{}) == Mebibytes{});
  CHECK(part_of(ByteCount{80'000'999}, DevicePart{250}) == ByteCount{20'000'000});
}

TEST_CASE("a narrower representation goes into a wider one") {
  GpuThousandths sum = GpuThousandths::in<std::uint16_t>{60'000};
  sum += GpuThousandths::in<std::uint16_t>{60'000};
  CHECK(sum == GpuThousandths{120'000});
  CHECK((sum - GpuThousandths{119'500}).narrow<std::uint16_t>().value() == 500);
}
