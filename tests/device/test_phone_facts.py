"""What Android says of itself, as it says it."""

from __future__ import annotations

from pathlib import Path

from as2d_cli.device.adb import Adb
from as2d_cli.device.phone import PhoneFacts, PhoneHeat, read_heat, read_phone
from tests.device.phone import Phone

BATTERY = """\
Current Battery Service state:
  AC powered: false
  USB powered: true
  Wireless powered: false
  Max charging current: 500000
  status: 2
  health: 2
  present: true
  level: 87
  scale: 100
  voltage: 4293
  temperature: 287
  technology: Li-ion"""

THERMAL = """\
IsStatusOverride: false
ThermalEventListeners:
	callbacks: 2
Thermal Status: 1
Cached temperatures:
	Temperature{mValue=99.0, mType=3, mName=stale, mStatus=0}
HAL Ready: true
HAL connection:
	ThermalHAL 2.0 connected: yes
Current temperatures from HAL:
	Temperature{mValue=45.3, mType=0, mName=CPU0, mStatus=0}
	Temperature{mValue=-1.5, mType=3, mName=skin, mStatus=1}
Current cooling devices from HAL:
	CoolingDevice{mValue=7, mType=2, mName=thermal-cpufreq-0}"""


def test_a_phone_tells_what_it_is(tmp_path: Path, adb: Adb) -> None:
    properties = {
        "ro.product.manufacturer": "Maker",
        "ro.product.model": "It's 8",
        "ro.build.fingerprint": "maker/a=b:14/x",
        "ro.product.cpu.abilist": "arm64-v8a,armeabi-v7a",
    }
    with Phone(tmp_path, properties) as phone:
        adb.call("connect", phone.serial)
        facts = read_phone(adb.device(phone.serial))
        adb.call("disconnect", phone.serial)
    assert facts.name == f"Maker It's 8 ({phone.serial})"
    assert facts.build == "maker/a=b:14/x"
    assert facts.abis == ("arm64-v8a", "armeabi-v7a")
    assert (facts.soc, facts.android) == ("", "")
    assert facts.kernel.startswith("Linux ")


def test_a_board_without_android_is_its_serial() -> None:
    assert PhoneFacts("A1").name == "A1"


def test_heat(tmp_path: Path, adb: Adb) -> None:
    with Phone(tmp_path, services={"battery": BATTERY, "thermalservice": THERMAL}) as phone:
        adb.call("connect", phone.serial)
        heat = read_heat(adb.device(phone.serial))
        phone.services.clear()
        nothing = read_heat(adb.device(phone.serial))
        adb.call("disconnect", phone.serial)
    assert heat == PhoneHeat(28.7, 87, True, "light", (("CPU0", 45.3), ("skin", -1.5)))
    assert nothing == PhoneHeat()
